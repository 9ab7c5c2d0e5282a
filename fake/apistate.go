package fake

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/registry"
	"github.com/tetherkube/tether/internal/apiserver/storage"
	"github.com/tetherkube/tether/internal/wal"
)

// savedObjectEntry is one record of an API server's log: an object as it was
// stored, or that one is gone, or, without a table, which version was reached.
type savedObjectEntry struct {
	Table     string          `json:"table,omitempty"`
	Object    json.RawMessage `json:"object,omitempty"` // has its key and version
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name,omitempty"`
	Version   uint64          `json:"version,omitempty"`
}

func saveObject(table string, data []byte) []byte {
	b := fmt.Appendf(make([]byte, 0, len(table)+len(data)+24), `{"table":%q,"object":`, table)
	return append(append(b, data...), '}')
}

func saveEvent(table string, e *storage.Event) ([]byte, error) {
	if e.Change != storage.Deleted {
		return saveObject(table, e.Object.Data), nil
	}
	return json.Marshal(savedObjectEntry{Table: table, Namespace: e.Object.Namespace, Name: e.Object.Name, Version: e.Object.Version})
}

// keptObjects is what a log says that there is.
type keptObjects struct {
	any     bool // there was a log
	version uint64
	tables  map[string]map[storage.Key][]byte
}

func (k *keptObjects) replay(raw []byte) error {
	var e savedObjectEntry
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	k.any = true
	if e.Table == "" {
		k.version = max(k.version, e.Version)
		return nil
	}
	if e.Object == nil {
		return k.remove(e)
	}
	var head struct {
		Metadata struct{ Namespace, Name, ResourceVersion string }
	}
	if err := json.Unmarshal(e.Object, &head); err != nil {
		return err
	}
	version, err := strconv.ParseUint(head.Metadata.ResourceVersion, 10, 64)
	if err != nil || head.Metadata.Name == "" {
		return errors.New("an object without a name or a version")
	}
	if k.tables == nil {
		k.tables = map[string]map[storage.Key][]byte{}
	}
	if k.tables[e.Table] == nil {
		k.tables[e.Table] = map[storage.Key][]byte{}
	}
	k.version = max(k.version, version)
	k.tables[e.Table][storage.Key{Namespace: head.Metadata.Namespace, Name: head.Metadata.Name}] = e.Object
	return nil
}

func (k *keptObjects) remove(e savedObjectEntry) error {
	key := storage.Key{Namespace: e.Namespace, Name: e.Name}
	if k.tables[e.Table][key] == nil {
		return fmt.Errorf("the end of %s %s/%s, which is not there", e.Table, e.Namespace, e.Name)
	}
	k.version = max(k.version, e.Version)
	delete(k.tables[e.Table], key)
	if e.Table == catalog.Definitions {
		// The table of a definition has its name, and goes with it.
		delete(k.tables, e.Name)
	}
	return nil
}

// registry is what a registry takes; nil where there was no log.
func (k *keptObjects) registry() *registry.Kept {
	if !k.any {
		return nil
	}
	kept := &registry.Kept{Version: k.version, Objects: map[string][][]byte{}}
	for table, objects := range k.tables {
		if len(objects) > 0 {
			kept.Objects[table] = slices.Collect(maps.Values(objects))
		}
	}
	return kept
}

// snapshot is records that make a server as this one is.
func (s *APIServer) snapshot() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		version, _ := json.Marshal(savedObjectEntry{Version: s.store.Version()}) // a number: cannot fail
		if !yield(version) {
			return
		}
		for _, table := range s.store.Tables() {
			list, err := s.store.List(table, storage.Selection{})
			if err != nil {
				continue // nobody takes a table away: the server does not serve yet
			}
			for _, o := range list.Objects {
				if !yield(saveObject(table, o.Data)) {
					return
				}
			}
		}
	}
}

// keepIn has every change on the disk before anybody sees it.
func (s *APIServer) keepIn(log *wal.Log) {
	s.store.Keep(func(table string, e *storage.Event) error {
		record, err := saveEvent(table, e)
		if err != nil {
			return err
		}
		return log.Append(record)
	})
}

package catalog

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Catalog is the resources that are served now. It is safe for concurrent use.
type Catalog struct {
	mu        sync.RWMutex // guards what follows
	resources map[schema.GroupVersionResource]*Resource
	custom    map[string]custom // by the definition's name
	changes   uint64
	// These are made of resources by each change, and never written to after that.
	all    []*Resource          // in the order of All
	tables []*Resource          // the stored ones
	table  map[string]*Resource // the same by their tables
}

// custom is what a definition has put.
type custom struct {
	stored *Resource // whether it is served or not
	served []*Resource
}

// New makes a catalog of the resources that are built in.
func New() *Catalog {
	c := &Catalog{resources: map[schema.GroupVersionResource]*Resource{}, custom: map[string]custom{}}
	for _, r := range builtIn() {
		c.resources[r.GVR()] = r
	}
	c.sortLocked()
	return c
}

// Find is a resource that is served, or nil.
func (c *Catalog) Find(gvr schema.GroupVersionResource) *Resource {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.resources[gvr]
}

// Put serves what a definition says from now on, in place of what it said. stored is
// the version in which its objects are, and nil where the definition is gone.
func (c *Catalog) Put(definition string, stored *Resource, served []*Resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.custom[definition].served {
		delete(c.resources, r.GVR())
	}
	delete(c.custom, definition)
	if stored != nil {
		c.custom[definition] = custom{stored, served}
	}
	for _, r := range served {
		c.resources[r.GVR()] = r
	}
	c.changes++
	c.sortLocked()
}

// Of is what a definition has put.
func (c *Catalog) Of(definition string) (stored *Resource, served []*Resource) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	of := c.custom[definition]
	return of.stored, of.served
}

// Definitions is one resource for each definition: the one that is stored, also where
// none is served.
func (c *Catalog) Definitions() []*Resource {
	c.mu.RLock()
	defer c.mu.RUnlock()
	stored := make([]*Resource, 0, len(c.custom))
	for _, name := range slices.Sorted(maps.Keys(c.custom)) {
		stored = append(stored, c.custom[name].stored)
	}
	return stored
}

// Changes counts what Put did, for who keeps something that is made of All.
func (c *Catalog) Changes() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.changes
}

// BuiltIn says whether a version of a group is one that every server has.
func (c *Catalog) BuiltIn(group, version string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for gvr, r := range c.resources {
		if gvr.Group == group && gvr.Version == version && !r.Custom {
			return true
		}
	}
	return false
}

// Tables are one resource for each table with objects that are served: the one that is
// stored. The slice is not written to.
func (c *Catalog) Tables() []*Resource {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.tables
}

// Table is the one of Tables whose objects a table has, or nil.
func (c *Catalog) Table(name string) *Resource {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.table[name]
}

// ByKind is the resource with a kind in a version, or nil.
func (c *Catalog) ByKind(gvk schema.GroupVersionKind) *Resource {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, r := range c.resources {
		if r.GVK() == gvk {
			return r
		}
	}
	return nil
}

// All is every resource that is served: by group, the one without a name first; newest
// and most stable version first; by name. The slice is not written to.
func (c *Catalog) All() []*Resource {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.all
}

// sortLocked makes anew what is made of the resources: controllers ask for it at each
// write, and it changes with definitions alone.
func (c *Catalog) sortLocked() {
	c.all = slices.SortedFunc(maps.Values(c.resources), func(a, b *Resource) int {
		if a.Group != b.Group {
			return strings.Compare(a.Group, b.Group)
		}
		if a.Version != b.Version {
			return -compareVersions(a.Version, b.Version)
		}
		return strings.Compare(a.Plural, b.Plural)
	})
	c.tables, c.table = nil, map[string]*Resource{}
	for _, r := range c.all {
		if r.Table != "" && c.table[r.Table] == nil {
			c.table[r.Table] = r.Stored
			c.tables = append(c.tables, r.Stored)
		}
	}
}

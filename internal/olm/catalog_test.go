package olm

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"
)

// blob is one document of a file-based catalog.
type blob struct {
	Schema, Name, Package, Image, DefaultChannel string
	Entries                                      []entry
	Properties                                   []struct {
		Type  string
		Value json.RawMessage
	}
	RelatedImages []struct{ Name, Image string }
}

type entry struct {
	Name, Replaces, SkipRange string
	Skips                     []string
}

func catalog(t *testing.T) (blobs []blob) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(deploy, "olm", "catalog", "ticket-controller", "catalog.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(raw), "---\n") {
		var b blob
		if err := yaml.Unmarshal([]byte(document), &b); err != nil {
			t.Fatal(err)
		}
		if b.Schema != "" {
			blobs = append(blobs, b)
		}
	}
	return blobs
}

// of are the blobs of a schema.
func of(schema string, blobs []blob) (some []blob) {
	for _, b := range blobs {
		if b.Schema == schema {
			some = append(some, b)
		}
	}
	return some
}

// heads are the entries that no other replaces or skips: what a new subscription gets.
func heads(entries []entry) (names []string) {
	below := map[string]bool{}
	for _, e := range entries {
		below[e.Replaces] = true
		for _, s := range e.Skips {
			below[s] = true
		}
	}
	for _, e := range entries {
		if !below[e.Name] {
			names = append(names, e.Name)
		}
	}
	return names
}

func TestTheChannelHasOneHeadAndEveryVersionIsReachedFromTheOneBefore(t *testing.T) {
	blobs := catalog(t)
	packages, channels := of("olm.package", blobs), of("olm.channel", blobs)
	if len(packages) != 1 || len(channels) != 1 || packages[0].DefaultChannel != channels[0].Name || channels[0].Package != packages[0].Name {
		t.Fatalf("packages %+v, channels %+v", packages, channels)
	}
	entries := channels[0].Entries
	newest := "ticket-controller." + filepath.Base(newest(t))
	if h := heads(entries); len(h) != 1 || h[0] != newest {
		t.Errorf("the heads are %q, want %s", h, newest)
	}
	if len(entries) < 2 {
		t.Error("there is no edge of an upgrade")
	}
	for i, e := range entries {
		if i == 0 {
			continue
		}
		before := entries[i-1].Name
		if e.Replaces != before {
			t.Errorf("%s replaces %q, want %s", e.Name, e.Replaces, before)
		}
		skips, err := semver.ParseRange(e.SkipRange)
		if err != nil {
			t.Fatalf("%s: skipRange %q: %v", e.Name, e.SkipRange, err)
		}
		for j, other := range entries {
			if v := semver.MustParse(strings.TrimPrefix(other.Name, "ticket-controller.v")); skips(v) != (j < i) {
				t.Errorf("%s skips %s: %v", e.Name, other.Name, skips(v))
			}
		}
	}
}

func TestTwoHeadsAreFound(t *testing.T) {
	if h := heads([]entry{{Name: "a"}, {Name: "b", Replaces: "a"}, {Name: "c", Replaces: "a"}}); len(h) != 2 {
		t.Errorf("found %q", h)
	}
}

// With its manifests in the catalog and no image, a bundle needs no job to unpack it.
func TestEveryBundleStandsInTheCatalogAsItIs(t *testing.T) {
	blobs := of("olm.bundle", catalog(t))
	folders := bundles(t)
	if len(blobs) != len(folders) {
		t.Fatalf("there are %d bundles in the catalog and %d folders", len(blobs), len(folders))
	}
	for i, folder := range folders {
		b, version := blobs[i], filepath.Base(folder)
		if b.Name != "ticket-controller."+version || b.Image != "" || len(b.RelatedImages) != 1 || !strings.HasSuffix(b.RelatedImages[0].Image, ":"+version) {
			t.Errorf("%s: %+v", folder, b)
		}
		var objects []map[string]any
		kinds := map[string]int{}
		for _, p := range b.Properties {
			kinds[p.Type]++
			var value struct {
				Data                       []byte
				PackageName, Version, Kind string
			}
			if err := json.Unmarshal(p.Value, &value); err != nil {
				t.Fatalf("%s: %v", p.Type, err)
			}
			switch p.Type {
			case "olm.package":
				if value.PackageName != "ticket-controller" || "v"+value.Version != version {
					t.Errorf("%s: %+v", folder, value)
				}
			case "olm.gvk":
				if value.Kind != "Ticket" || value.Version != "v1" {
					t.Errorf("%s: %+v", folder, value)
				}
			case "olm.bundle.object":
				var o map[string]any
				if err := json.Unmarshal(value.Data, &o); err != nil {
					t.Fatalf("%s: %v: %s", folder, err, base64.StdEncoding.EncodeToString(value.Data))
				}
				objects = append(objects, o)
			}
		}
		if kinds["olm.package"] != 1 || kinds["olm.gvk"] != 1 {
			t.Errorf("%s: properties %v", folder, kinds)
		}
		files, err := filepath.Glob(filepath.Join(folder, "manifests", "*.yaml"))
		if err != nil || len(files) != len(objects) {
			t.Fatalf("%s: %d files, %d objects, %v", folder, len(files), len(objects), err)
		}
		for j, file := range files {
			var want map[string]any
			read(t, file, &want)
			if !reflect.DeepEqual(objects[j], want) {
				t.Errorf("%s is another in the catalog", file)
			}
		}
	}
}

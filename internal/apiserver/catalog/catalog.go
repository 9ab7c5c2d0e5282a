package catalog

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Catalog is the resources that are served now. It is safe for concurrent use.
type Catalog struct {
	mu        sync.RWMutex // guards what follows
	resources map[schema.GroupVersionResource]*Resource
	custom    map[string][]*Resource // by the definition's name
	changes   uint64
}

// New makes a catalog of the resources that are built in.
func New() *Catalog {
	c := &Catalog{resources: map[schema.GroupVersionResource]*Resource{}, custom: map[string][]*Resource{}}
	for _, r := range builtIn() {
		c.resources[r.GVR()] = r
	}
	return c
}

// Find is a resource that is served, or nil.
func (c *Catalog) Find(gvr schema.GroupVersionResource) *Resource {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.resources[gvr]
}

// Put serves what a definition says from now on, in place of what it said.
func (c *Catalog) Put(definition string, resources []*Resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.custom[definition] {
		delete(c.resources, r.GVR())
	}
	delete(c.custom, definition)
	if len(resources) > 0 {
		c.custom[definition] = resources
	}
	for _, r := range resources {
		c.resources[r.GVR()] = r
	}
	c.changes++
}

// Of is what a definition has put.
func (c *Catalog) Of(definition string) []*Resource {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.custom[definition]
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

// Tables are one resource for each table: the one that is stored.
func (c *Catalog) Tables() []*Resource {
	seen := map[string]bool{}
	var stored []*Resource
	for _, r := range c.All() {
		if r.Table != "" && !seen[r.Table] {
			seen[r.Table] = true
			stored = append(stored, r.Stored)
		}
	}
	return stored
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

// All is every resource: by group, the one without a name first; newest and most
// stable version first; by name.
func (c *Catalog) All() []*Resource {
	c.mu.RLock()
	all := make([]*Resource, 0, len(c.resources))
	for _, r := range c.resources {
		all = append(all, r)
	}
	c.mu.RUnlock()
	slices.SortFunc(all, func(a, b *Resource) int {
		if a.Group != b.Group {
			return strings.Compare(a.Group, b.Group)
		}
		if a.Version != b.Version {
			return -compareVersions(a.Version, b.Version)
		}
		return strings.Compare(a.Plural, b.Plural)
	})
	return all
}

package catalog

import (
	"slices"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// compareVersions orders as kube-aggregator does: v1 is greater than v1beta2.
func compareVersions(a, b string) int { return version.CompareKubeAwareVersionStrings(a, b) }

// Groups is the group list of /apis.
func (c *Catalog) Groups() *metav1.APIGroupList {
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for _, r := range c.All() {
		if r.Group == "" {
			continue
		}
		if n := len(list.Groups); n == 0 || list.Groups[n-1].Name != r.Group {
			list.Groups = append(list.Groups, metav1.APIGroup{Name: r.Group})
		}
		g := &list.Groups[len(list.Groups)-1]
		v := metav1.GroupVersionForDiscovery{GroupVersion: r.GroupVersion().String(), Version: r.Version}
		if !slices.Contains(g.Versions, v) {
			g.Versions = append(g.Versions, v)
			g.PreferredVersion = g.Versions[0]
		}
	}
	return list
}

// Group is one group, as /apis/GROUP has it; nil where there is none.
func (c *Catalog) Group(name string) *metav1.APIGroup {
	for _, g := range c.Groups().Groups {
		if g.Name == name {
			g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			return &g
		}
	}
	return nil
}

// Resources is the resource list of one version; nil where there is none.
func (c *Catalog) Resources(group, version string) *metav1.APIResourceList {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	for _, r := range c.All() {
		if r.Group != group || r.Version != version {
			continue
		}
		list.GroupVersion = r.GroupVersion().String()
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.Plural, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind, Verbs: r.Verbs(),
			ShortNames: r.ShortNames, Categories: r.Categories,
		})
		for _, sub := range r.subresources() {
			one := metav1.APIResource{Name: r.Plural + "/" + sub.name, Namespaced: r.Namespaced, Kind: r.Kind, Verbs: sub.verbs}
			if sub.kind != nil {
				one.Group, one.Version, one.Kind = sub.kind.Group, sub.kind.Version, sub.kind.Kind
			}
			list.APIResources = append(list.APIResources, one)
		}
	}
	if list.GroupVersion == "" {
		return nil
	}
	return list
}

type subresource struct {
	name  string
	verbs metav1.Verbs
	kind  *metav1.GroupVersionKind // nil: the resource's own
}

func (r *Resource) subresources() []subresource {
	var subs []subresource
	if r.Finalize {
		subs = append(subs, subresource{"finalize", metav1.Verbs{"update"}, nil})
	}
	if r.Status {
		subs = append(subs, subresource{"status", metav1.Verbs{"get", "patch", "update"}, nil})
	}
	if r.Scale != nil {
		kind := Scales().GVK()
		subs = append(subs, subresource{
			"scale",
			metav1.Verbs{"get", "patch", "update"},
			&metav1.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind},
		})
	}
	return subs
}

// Aggregated is the whole of discovery in one document: of /api where legacy, of
// /apis otherwise.
func (c *Catalog) Aggregated(legacy bool) *apidiscovery.APIGroupDiscoveryList {
	list := &apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
		Items:    []apidiscovery.APIGroupDiscovery{},
	}
	for _, r := range c.All() {
		if (r.Group == "") != legacy {
			continue
		}
		if n := len(list.Items); n == 0 || list.Items[n-1].Name != r.Group {
			list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: r.Group}})
		}
		g := &list.Items[len(list.Items)-1]
		if n := len(g.Versions); n == 0 || g.Versions[n-1].Version != r.Version {
			g.Versions = append(g.Versions, apidiscovery.APIVersionDiscovery{Version: r.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent})
		}
		v := &g.Versions[len(g.Versions)-1]
		v.Resources = append(v.Resources, r.discovery())
	}
	return list
}

func (r *Resource) discovery() apidiscovery.APIResourceDiscovery {
	kind := &metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
	scope := apidiscovery.ScopeCluster
	if r.Namespaced {
		scope = apidiscovery.ScopeNamespace
	}
	d := apidiscovery.APIResourceDiscovery{
		Resource: r.Plural, ResponseKind: kind, Scope: scope, SingularResource: r.Singular,
		Verbs: r.Verbs(), ShortNames: r.ShortNames, Categories: r.Categories,
	}
	for _, sub := range r.subresources() {
		one := apidiscovery.APISubresourceDiscovery{Subresource: sub.name, ResponseKind: kind, Verbs: sub.verbs}
		if sub.kind != nil {
			one.ResponseKind = sub.kind
		}
		d.Subresources = append(d.Subresources, one)
	}
	return d
}

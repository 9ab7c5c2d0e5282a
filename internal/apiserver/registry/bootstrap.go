package registry

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tetherkube/tether/internal/apiserver/catalog"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// bootstrap makes the objects that every cluster has, where they are missing.
func (r *Registry) bootstrap() {
	for _, name := range []string{metav1.NamespaceSystem, metav1.NamespaceDefault, metav1.NamespacePublic, "kube-node-lease"} {
		r.plant(r.namespaces(), catalog.Object{"metadata": catalog.Object{"name": name}})
	}
	role := r.Catalog.Find(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"})
	binding := r.Catalog.Find(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"})
	for _, b := range bootstrapRoles() {
		r.plant(role, catalog.Object{
			"metadata": catalog.Object{"name": b.name, "labels": catalog.Object{"kubernetes.io/bootstrapping": "rbac-defaults"}},
			"rules":    b.rules,
		})
		if b.group != "" {
			r.plant(binding, catalog.Object{
				"metadata": catalog.Object{"name": b.name, "labels": catalog.Object{"kubernetes.io/bootstrapping": "rbac-defaults"}},
				"roleRef":  catalog.Object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": b.name},
				"subjects": []any{catalog.Object{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": b.group}},
			})
		}
	}
}

// plant stores an object without asking anybody.
func (r *Registry) plant(res *catalog.Resource, obj catalog.Object) {
	u := meta(obj)
	if r.Store.Get(res.Table, storage.Key{Name: u.GetName()}) != nil {
		return
	}
	u.SetGroupVersionKind(res.GVK())
	r.fillNew(u)
	fitted, _, err := res.Model.Fit(obj)
	if err != nil {
		panic("registry: an object of the server's own: " + err.Error())
	}
	if res.Traits.Prepare != nil {
		res.Traits.Prepare(fitted, nil)
	}
	encode, err := r.encoder(res, fitted)
	if err == nil {
		_, err = r.Store.Write(res.Table, storage.Key{Name: u.GetName()}, nil, encode)
	}
	if err != nil {
		panic("registry: an object of the server's own: " + err.Error())
	}
}

type bootstrapRole struct {
	name, group string
	rules       []any
}

func bootstrapRoles() []bootstrapRole {
	rule := func(groups, resources, verbs []any) any {
		return catalog.Object{"apiGroups": groups, "resources": resources, "verbs": verbs}
	}
	paths := func(urls ...any) any { return catalog.Object{"nonResourceURLs": urls, "verbs": []any{"get"}} }
	all := []any{"*"}
	return []bootstrapRole{
		{"cluster-admin", "system:masters", []any{rule(all, all, all), catalog.Object{"nonResourceURLs": all, "verbs": all}}},
		{"system:discovery", "system:authenticated", []any{
			paths("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version", "/version/"),
		}},
		{"system:basic-user", "system:authenticated", []any{
			rule([]any{"authorization.k8s.io"}, []any{"selfsubjectaccessreviews", "selfsubjectrulesreviews"}, []any{"create"}),
			rule([]any{"authentication.k8s.io"}, []any{"selfsubjectreviews"}, []any{"create"}),
		}},
		{"system:public-info-viewer", "system:unauthenticated", []any{paths("/healthz", "/livez", "/readyz", "/version", "/version/")}},
	}
}

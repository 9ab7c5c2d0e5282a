package catalog

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tetherkube/tether/internal/apiserver/table"
)

// Tables that the server itself looks into.
const (
	Namespaces  = "namespaces"
	Definitions = "customresourcedefinitions.apiextensions.k8s.io"
)

const rbacGroup = "rbac.authorization.k8s.io"

// builtIn are the resources of every server.
func builtIn() []*Resource {
	all := append(core(), named(
		builtin("apps", "Deployment", "deployments").short("deploy").in("all").status().generation().filled(fillDeployment),
		builtin("coordination.k8s.io", "Lease", "leases").upsert(),
		definitions(),
	)...)
	all = append(all, named(
		builtin(rbacGroup, "Role", "roles").upsert().named(PathSegment),
		builtin(rbacGroup, "RoleBinding", "rolebindings").upsert().named(PathSegment).filled(fillBinding).validated(roleRef),
		builtin(rbacGroup, "ClusterRole", "clusterroles").upsert().named(PathSegment).clustered(),
		builtin(rbacGroup, "ClusterRoleBinding", "clusterrolebindings").upsert().named(PathSegment).filled(fillBinding).validated(roleRef).clustered(),
	)...)
	events := builtin("events.k8s.io", "Event", "events").short("ev").upsert().selecting("reason", "regarding.kind", "regarding.namespace",
		"regarding.name", "regarding.uid", "regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath", "reportingController", "type")
	for _, r := range all {
		if r.Plural == "events" {
			events.Table, events.Stored, events.From, r.From = r.Table, r, eventToNew, eventToCore
		}
	}
	all = append(all, events)
	for _, v := range []struct{ group, kind, plural string }{
		{"authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews"},
		{"authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews"},
		{"authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews"},
		{"authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews"},
		{"authentication.k8s.io", "TokenReview", "tokenreviews"},
	} {
		r := builtin(v.group, v.kind, v.plural).clustered()
		r.ReadOnly, r.Table = true, ""
		all = append(all, r)
	}
	return all
}

func named(rs ...*Resource) []*Resource { return rs }

func core() []*Resource {
	return []*Resource{
		builtin("", "Namespace", Namespaces).short("ns").status().clustered().returned().named(validation.NameIsDNSLabel).
			prepared(prepareNamespace).selecting("status.phase").finalized(),
		builtin("", "ConfigMap", "configmaps").short("cm").validated(immutable("data", "binaryData")),
		builtin("", "Secret", "secrets").filled(fillSecret).prepared(prepareSecret).selecting("type").validated(immutable("data", "type")),
		builtin("", "ServiceAccount", "serviceaccounts").short("sa").returned(),
		builtin("", "Service", "services").short("svc").in("all").status().returned().upsert().filled(fillService).prepared(prepareService).
			named(validation.NameIsDNS1035Label),
		builtin("", "Pod", "pods").short("po").in("all").status().returned().generation().filled(fillPod).prepared(preparePod).graceful(podGrace).
			selecting("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase", "status.podIP"),
		builtin("", "Event", "events").short("ev").upsert().selecting("involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
			"involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
			"reason", "reportingComponent", "source", "type"),
	}
}

// PathSegment says what keeps a name from being part of a URL's path.
func PathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// builtin is a namespaced resource of version v1 with a Go type.
func builtin(group, kind, plural string) *Resource {
	const version = "v1"
	r := &Resource{
		Group: group, Version: version, Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List", Namespaced: true,
		Model:  &goType{gvk: schema.GroupVersionKind{Group: group, Version: version, Kind: kind}},
		Traits: Traits{Name: validation.NameIsDNSSubdomain},
	}
	r.Table = r.GroupResource().String()
	r.Stored = r
	r.Columns = table.BuiltIn(r.GVK())
	return r
}

func (r *Resource) short(names ...string) *Resource { r.ShortNames = names; return r }
func (r *Resource) in(names ...string) *Resource    { r.Categories = names; return r }
func (r *Resource) status() *Resource               { r.Status = true; return r }
func (r *Resource) finalized() *Resource            { r.Finalize = true; return r }
func (r *Resource) clustered() *Resource            { r.Namespaced = false; return r }
func (r *Resource) upsert() *Resource               { r.Traits.CreateOnUpdate = true; return r }
func (r *Resource) returned() *Resource             { r.Traits.ReturnsDeleted = true; return r }
func (r *Resource) generation() *Resource           { r.Traits.Generation = true; return r }

func (r *Resource) named(f func(string, bool) []string) *Resource { r.Traits.Name = f; return r }
func (r *Resource) prepared(f func(obj, old Object)) *Resource    { r.Traits.Prepare = f; return r }
func (r *Resource) filled(f func(Object)) *Resource               { r.Model.(*goType).fill = f; return r }

func (r *Resource) graceful(f func(Object) int64) *Resource { r.Traits.Grace = f; return r }
func (r *Resource) validated(f func(obj, old Object, subresource string) field.ErrorList) *Resource {
	r.Traits.Validate = f
	return r
}

func (r *Resource) selecting(paths ...string) *Resource {
	for _, p := range paths {
		fields := strings.Split(p, ".")
		if p == "source" {
			fields = []string{"source", "component"}
		}
		r.Selectable = append(r.Selectable, Selectable{Name: p, Value: func(obj Object) string { // called by many at once
			s, _, _ := unstructured.NestedString(obj, fields...) // another type selects as empty
			return s
		}})
	}
	return r
}

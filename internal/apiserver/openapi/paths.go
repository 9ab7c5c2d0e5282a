package openapi

import "k8s.io/apimachinery/pkg/runtime/schema"

// The query parameters of operations. kubectl asks for fieldValidation before it
// leaves validation to the server.
var (
	writing  = []string{"dryRun", "fieldManager", "fieldValidation"}
	patching = append(writing, "force")
	deleting = []string{"dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"}
	listing  = []string{
		"allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
		"resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
	}
)

// paths are the paths of a resource, with what can be done there.
func paths(r Resource) map[string]any {
	prefix := "/" + Key(r.GroupVersion()) + "/"
	everywhere := prefix + r.Plural
	of := everywhere
	if r.Namespaced {
		of = prefix + "namespaces/{namespace}/" + r.Plural
	}
	all := map[string]any{}
	list := operation(r.GroupVersionKind, "list", listing)
	if r.Namespaced {
		all[everywhere] = map[string]any{"get": list}
	}
	all[of] = map[string]any{
		"get":    list,
		"post":   operation(r.GroupVersionKind, "post", writing),
		"delete": operation(r.GroupVersionKind, "deletecollection", listing),
	}
	one := map[string]any{
		"get":   operation(r.GroupVersionKind, "get", []string{"resourceVersion"}),
		"put":   operation(r.GroupVersionKind, "put", writing),
		"patch": patch(r),
	}
	if r.Status {
		all[of+"/{name}/status"] = one
	}
	withDelete := map[string]any{"delete": operation(r.GroupVersionKind, "delete", deleting)}
	for verb, op := range one {
		withDelete[verb] = op
	}
	all[of+"/{name}"] = withDelete
	return all
}

func operation(gvk schema.GroupVersionKind, action string, parameters []string) map[string]any {
	var all []any
	for _, name := range parameters {
		all = append(all, map[string]any{"name": name, "in": "query", "schema": map[string]any{"type": kindOf(name)}})
	}
	return map[string]any{
		"parameters":                      all,
		"responses":                       map[string]any{"200": map[string]any{"description": "OK"}},
		"x-kubernetes-action":             action,
		"x-kubernetes-group-version-kind": gvkOf(gvk),
	}
}

func kindOf(parameter string) string {
	switch parameter {
	case "force", "watch", "allowWatchBookmarks", "sendInitialEvents", "orphanDependents":
		return "boolean"
	case "limit", "timeoutSeconds", "gracePeriodSeconds":
		return "integer"
	}
	return "string"
}

// patch has the kinds of patch, by which kubectl decides what to send: those of
// custom resources are not strategic.
func patch(r Resource) map[string]any {
	content := map[string]any{}
	for _, kind := range []string{"application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"} {
		content[kind] = map[string]any{}
	}
	if !r.Custom {
		content["application/strategic-merge-patch+json"] = map[string]any{}
	}
	op := operation(r.GroupVersionKind, "patch", patching)
	op["requestBody"] = map[string]any{"content": content, "required": true}
	return op
}

func gvkOf(gvk schema.GroupVersionKind) map[string]any {
	return map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}
}

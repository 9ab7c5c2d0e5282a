// Package openapi makes the OpenAPI v3 documents of an API server, as far as
// kubectl reads them: `kubectl explain` with its descriptions, what `kubectl
// apply --validate` asks before it leaves validation to the server, and the merge
// keys that a strategic merge patch is made by.
//
//	doc, err := openapi.Document(gv, resources) // for each group and version
//	index, err := openapi.Index(docs)           // for /openapi/v3
//
// Custom resources are described by the schemas of their CRD; built-in types by
// their Go types and those types' SwaggerDoc. What stands only in comments of the
// Go source is missing there: which fields are enums or have a default, and
// x-kubernetes-list-type (but for metadata); for server-side apply of built-in
// types there is client-go's applyconfigurations.NewTypeConverter.
//
// Only what kubectl needs is said of an operation. Everything is pure.
package openapi

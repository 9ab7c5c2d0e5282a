// Package catalog knows which resources a fake API server has: those that are
// built in, and those that definitions of custom resources add and take away. A
// [Resource] is one of them in one version, with the [Model] that reads, prunes,
// defaults and validates its objects; the discovery documents are made of them.
package catalog

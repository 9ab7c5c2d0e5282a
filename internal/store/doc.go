// Package store holds the objects of one resource as this process knows them.
// It has no network: a reflector tells it what the API server says, and writers
// tell it what their writes answered.
//
// Of a watch event and a write's answer it keeps the newer by resourceVersion, so
// that nobody who has written is ever shown something older. Where two versions do
// not compare (a server that is not kube-apiserver), equality alone is used. Only
// an authoritative list, one that was asked for with an empty resourceVersion,
// turns an object back: after an etcd restore versions start again from lower.
// Even then, what was written after that list was asked for stays.
package store

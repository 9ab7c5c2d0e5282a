package catalog

// The two resources of events are views of each other: the same fields under
// other names.
var eventNames = map[string]string{ // of events.k8s.io by that of core
	"involvedObject":     "regarding",
	"message":            "note",
	"reportingComponent": "reportingController",
	"source":             "deprecatedSource",
	"firstTimestamp":     "deprecatedFirstTimestamp",
	"lastTimestamp":      "deprecatedLastTimestamp",
	"count":              "deprecatedCount",
}

func eventToNew(obj Object) Object {
	for core, now := range eventNames {
		rename(obj, core, now)
	}
	return obj
}

func eventToCore(obj Object) Object {
	for core, now := range eventNames {
		rename(obj, now, core)
	}
	return obj
}

func rename(obj Object, from, to string) {
	if v, ok := obj[from]; ok {
		delete(obj, from)
		obj[to] = v
	}
}

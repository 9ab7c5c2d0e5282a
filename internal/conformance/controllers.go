package conformance

import "testing"

// controllers are the behaviours that take a controller manager.
var controllers = []behaviour{
	{"What belongs to a deleted object goes too", func(t *testing.T, e *env) {
		for _, policy := range []string{"Background", "Foreground"} {
			o := e.post(t, widgetsPath, widget("a", `{}`))
			e.post(t, configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","ownerReferences":[{"apiVersion":"$GROUP/v1","kind":"Widget","name":"a","uid":"`+o.uid()+`","blockOwnerDeletion":true}]}}`)
			e.delete(t, widgetsPath+"/a?propagationPolicy="+policy)
			e.gone(t, configMaps, "c")
			e.gone(t, widgetsPath, "a")
		}
	}},
	{"What belongs to an object that is deleted alone stays", func(t *testing.T, e *env) {
		o := e.post(t, widgetsPath, widget("a", `{}`))
		e.post(t, configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","ownerReferences":[{"apiVersion":"$GROUP/v1","kind":"Widget","name":"a","uid":"`+o.uid()+`"}]}}`)
		e.delete(t, widgetsPath+"/a?propagationPolicy=Orphan")
		e.gone(t, widgetsPath, "a")
		if got := e.get(t, configMaps+"/c"); got.at("metadata", "ownerReferences") != nil {
			t.Errorf("%s", got.json())
		}
	}},
	{"A namespace that is deleted is emptied, and goes when it is empty", func(t *testing.T, e *env) {
		own := e.inNamespace(t)
		own.post(t, widgetsPath, withFinalizer)
		own.post(t, configMaps, configMap("c", `{}`))
		own.delete(t, "/api/v1/namespaces/$NS")
		own.gone(t, configMaps, "c")
		own.awaited(t, widgetsPath, "a", func(o object) bool { return o.at("metadata", "deletionTimestamp") != nil })
		own.merge(t, widgetsPath+"/a", `{"metadata":{"finalizers":null}}`)
		own.gone(t, "/api/v1/namespaces", own.ns)
	}},
}

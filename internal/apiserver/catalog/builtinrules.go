package catalog

import (
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Child is the object under a key, made where it is missing.
func Child(obj Object, key string) Object {
	child, ok := obj[key].(Object)
	if !ok {
		child = Object{}
		obj[key] = child
	}
	return child
}

// orDefault sets a field that is missing or empty.
func orDefault(obj Object, key string, value any) {
	if v, ok := obj[key]; !ok || v == "" || v == nil {
		obj[key] = value
	}
}

func prepareNamespace(obj, old Object) {
	meta := Child(obj, "metadata")
	name, _ := meta["name"].(string)
	Child(meta, "labels")["kubernetes.io/metadata.name"] = name
	spec := Child(obj, "spec")
	if old == nil {
		finalizers, _, _ := unstructured.NestedStringSlice(spec, "finalizers") // what is no list counts as none
		for _, f := range finalizers {
			if f == "kubernetes" {
				finalizers = nil
				break
			}
		}
		if finalizers != nil || spec["finalizers"] == nil {
			list, _ := spec["finalizers"].([]any)
			spec["finalizers"] = append(list, "kubernetes")
		}
		obj["status"] = Object{"phase": "Active"}
		return
	}
	if was, ok := old["spec"]; ok {
		obj["spec"] = was
	}
}

func fillSecret(obj Object) { orDefault(obj, "type", "Opaque") }

// prepareSecret moves what is given in plain text to where it is kept.
func prepareSecret(obj, _ Object) {
	plain, ok := obj["stringData"].(Object)
	if !ok {
		return
	}
	data := Child(obj, "data")
	for k, v := range plain {
		s, _ := v.(string)
		data[k] = base64.StdEncoding.EncodeToString([]byte(s))
	}
	delete(obj, "stringData")
}

func fillService(obj Object) {
	spec := Child(obj, "spec")
	orDefault(spec, "type", "ClusterIP")
	orDefault(spec, "sessionAffinity", "None")
	ports, _ := spec["ports"].([]any)
	for _, p := range ports {
		if port, ok := p.(Object); ok {
			orDefault(port, "protocol", "TCP")
			if v, ok := port["targetPort"]; !ok || v == int64(0) {
				port["targetPort"] = port["port"]
			}
		}
	}
}

// prepareService gives an address to a service that wants one: by its name, since
// nothing is behind it.
func prepareService(obj, old Object) {
	spec := Child(obj, "spec")
	if spec["type"] == "ExternalName" {
		return
	}
	if old != nil {
		if was := text(old, "spec", "clusterIP"); was != "" {
			orDefault(spec, "clusterIP", was)
		}
	}
	h := fnv.New32a()
	fmt.Fprint(h, text(obj, "metadata", "namespace"), "/", text(obj, "metadata", "name"))
	sum := h.Sum32()
	orDefault(spec, "clusterIP", fmt.Sprintf("10.96.%d.%d", sum>>8&0xff, sum&0xff))
	if spec["clusterIPs"] == nil {
		spec["clusterIPs"] = []any{spec["clusterIP"]}
	}
	if spec["ipFamilies"] == nil {
		spec["ipFamilies"] = []any{"IPv4"}
	}
	orDefault(spec, "ipFamilyPolicy", "SingleStack")
	orDefault(spec, "internalTrafficPolicy", "Cluster")
}

func fillPod(obj Object) { fillPodSpec(Child(obj, "spec")) }

func fillPodSpec(spec Object) {
	orDefault(spec, "restartPolicy", "Always")
	orDefault(spec, "dnsPolicy", "ClusterFirst")
	orDefault(spec, "schedulerName", "default-scheduler")
	if _, ok := spec["terminationGracePeriodSeconds"]; !ok {
		spec["terminationGracePeriodSeconds"] = int64(30)
	}
	for _, key := range []string{"containers", "initContainers"} {
		containers, _ := spec[key].([]any)
		for _, c := range containers {
			if container, ok := c.(Object); ok {
				orDefault(container, "terminationMessagePath", "/dev/termination-log")
				orDefault(container, "terminationMessagePolicy", "File")
				orDefault(container, "imagePullPolicy", "IfNotPresent")
				ports, _ := container["ports"].([]any)
				for _, p := range ports {
					if port, ok := p.(Object); ok {
						orDefault(port, "protocol", "TCP")
					}
				}
			}
		}
	}
}

func preparePod(obj, old Object) {
	if old == nil {
		obj["status"] = Object{"phase": "Pending"}
	}
}

// podGrace is the time that a kubelet is given. Where no node has the pod, or it has
// ended, nobody is waited for.
func podGrace(obj Object) int64 {
	phase := text(obj, "status", "phase")
	if text(obj, "spec", "nodeName") == "" || phase == "Failed" || phase == "Succeeded" {
		return 0
	}
	seconds, _, _ := unstructured.NestedInt64(obj, "spec", "terminationGracePeriodSeconds") // it has a default
	return seconds
}

func fillDeployment(obj Object) {
	spec := Child(obj, "spec")
	if _, ok := spec["replicas"]; !ok {
		spec["replicas"] = int64(1)
	}
	fillPodSpec(Child(Child(spec, "template"), "spec"))
	strategy := Child(spec, "strategy")
	orDefault(strategy, "type", "RollingUpdate")
	if strategy["type"] == "RollingUpdate" {
		rolling := Child(strategy, "rollingUpdate")
		orDefault(rolling, "maxUnavailable", "25%")
		orDefault(rolling, "maxSurge", "25%")
	}
	orDefault(spec, "revisionHistoryLimit", int64(10))
	orDefault(spec, "progressDeadlineSeconds", int64(600))
}

// immutable refuses changes of the fields of an object that says it is immutable.
func immutable(fields ...string) func(obj, old Object, subresource string) field.ErrorList {
	return func(obj, old Object, _ string) (errs field.ErrorList) {
		if old == nil || old["immutable"] != true {
			return nil
		}
		if obj["immutable"] != true {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
		}
		for _, name := range fields {
			if !reflect.DeepEqual(obj[name], old[name]) {
				errs = append(errs, field.Forbidden(field.NewPath(name), "field is immutable when `immutable` is set"))
			}
		}
		return errs
	}
}

// roleRef is of roles that there may be, and does not change: a binding to another
// role is another binding.
func roleRef(obj, old Object, _ string) (errs field.ErrorList) {
	root, ref := field.NewPath("roleRef"), Child(obj, "roleRef")
	kinds := []string{"Role", "ClusterRole"}
	if obj["kind"] == "ClusterRoleBinding" {
		kinds = kinds[1:]
	}
	if ref["apiGroup"] != rbacGroup {
		errs = append(errs, field.NotSupported(root.Child("apiGroup"), text(ref, "apiGroup"), []string{rbacGroup}))
	}
	if kind := text(ref, "kind"); !slices.Contains(kinds, kind) {
		errs = append(errs, field.NotSupported(root.Child("kind"), kind, kinds))
	}
	if text(ref, "name") == "" {
		errs = append(errs, field.Required(root.Child("name"), ""))
	}
	if old != nil && !reflect.DeepEqual(ref, old["roleRef"]) {
		given := struct{ APIGroup, Kind, Name string }{text(ref, "apiGroup"), text(ref, "kind"), text(ref, "name")}
		errs = append(errs, field.Invalid(root, given, validation.FieldImmutableErrorMsg))
	}
	return errs
}

func fillBinding(obj Object) {
	orDefault(Child(obj, "roleRef"), "apiGroup", rbacGroup)
	subjects, _ := obj["subjects"].([]any)
	for _, s := range subjects {
		if subject, ok := s.(Object); ok && (subject["kind"] == "User" || subject["kind"] == "Group") {
			orDefault(subject, "apiGroup", rbacGroup)
		}
	}
}

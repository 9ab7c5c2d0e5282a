package table

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// BuiltIn is the columns of a built-in type. One that is not known has its name
// and when it was created, as those have on the real server that print nothing
// of their own.
func BuiltIn(gvk schema.GroupVersionKind) []Column {
	switch gvk.GroupKind().String() {
	case "Namespace":
		return []Column{name(), text("Status", "The status of the namespace", "status", "phase"), age()}
	case "Pod":
		return pods()
	case "ConfigMap":
		return []Column{name(), count("Data", corev1.ConfigMap{}.SwaggerDoc()["data"], "data", "binaryData"), age()}
	case "Secret":
		doc := corev1.Secret{}.SwaggerDoc()
		return []Column{name(), text("Type", doc["type"], "type"), count("Data", doc["data"], "data"), age()}
	case "ServiceAccount":
		return []Column{name(), age()}
	case "Service":
		return services()
	case "Event", "Event.events.k8s.io":
		return events()
	case "Deployment.apps":
		return deployments()
	case "Lease.coordination.k8s.io":
		return []Column{name(), text("Holder", coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"], "spec", "holderIdentity"), age()}
	case "RoleBinding.rbac.authorization.k8s.io":
		return bindings("roleBinding", rbacv1.RoleBinding{}.SwaggerDoc()["roleRef"])
	case "ClusterRoleBinding.rbac.authorization.k8s.io":
		return bindings("clusterRoleBinding", rbacv1.ClusterRoleBinding{}.SwaggerDoc()["roleRef"])
	case "CustomResourceDefinition.apiextensions.k8s.io":
		return definitions()
	}
	return []Column{name(), created()}
}

func age() Column {
	return Column{
		Name: "Age", Type: "string", Description: objectMeta["creationTimestamp"],
		cell: func(i item) any { return i.date(i.text("metadata", "creationTimestamp")) },
	}
}

func created() Column {
	return Column{
		Name: "Created At", Type: "date", Description: objectMeta["creationTimestamp"],
		cell: func(i item) any { return i.text("metadata", "creationTimestamp") },
	}
}

// text shows a text as it stands in the object.
func text(name, description string, path ...string) Column {
	return Column{Name: name, Type: "string", Description: description, cell: func(i item) any { return i.text(path...) }}
}

// count shows how many members fields have together.
func count(name, description string, fields ...string) Column {
	return Column{Name: name, Type: "string", Description: description, cell: func(i item) any {
		var n int64
		for _, f := range fields {
			n += i.size(f)
		}
		return n
	}}
}

// typed is a column that is printed from the Go type. An object that does not
// decode has no cell.
func typed[T any](name, description string, cell func(*T, item) any) Column {
	return Column{Name: name, Type: "string", Description: description, cell: func(i item) any {
		obj := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(i.obj, obj); err != nil {
			return nil
		}
		return cell(obj, i)
	}}
}

// wide is a column that only wide tables show.
func wide(c Column) Column {
	c.Priority = 1
	return c
}

func deployments() []Column {
	status, spec := appsv1.DeploymentStatus{}.SwaggerDoc(), appsv1.DeploymentSpec{}.SwaggerDoc()
	containers := func(name, description string, cell func(corev1.Container) string) Column {
		return wide(typed(name, description, func(d *appsv1.Deployment, _ item) any {
			var each []string
			for _, c := range d.Spec.Template.Spec.Containers {
				each = append(each, cell(c))
			}
			return strings.Join(each, ",")
		}))
	}
	return []Column{
		name(),
		typed("Ready", "Number of the pod with ready state", func(d *appsv1.Deployment, _ item) any {
			want := int32(0)
			if d.Spec.Replicas != nil {
				want = *d.Spec.Replicas
			}
			return outOf(int(d.Status.ReadyReplicas), int(want))
		}),
		typed("Up-to-date", status["updatedReplicas"], func(d *appsv1.Deployment, _ item) any { return int64(d.Status.UpdatedReplicas) }),
		typed("Available", status["availableReplicas"], func(d *appsv1.Deployment, _ item) any { return int64(d.Status.AvailableReplicas) }),
		age(),
		containers("Containers", "Names of each container in the template.", func(c corev1.Container) string { return c.Name }),
		containers("Images", "Images referenced by each container in the template.", func(c corev1.Container) string { return c.Image }),
		wide(typed("Selector", spec["selector"], func(d *appsv1.Deployment, _ item) any {
			s, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
			if err != nil {
				return "<invalid>"
			}
			return s.String()
		})),
	}
}

func bindings(what, roleRef string) []Column {
	subjects := func(name, kind string) Column {
		return wide(typed(name, name+" in the "+what, func(b *rbacv1.RoleBinding, _ item) any {
			var each []string
			for _, s := range b.Subjects {
				switch {
				case s.Kind != kind:
				case kind == rbacv1.ServiceAccountKind:
					each = append(each, s.Namespace+"/"+s.Name)
				default:
					each = append(each, s.Name)
				}
			}
			return strings.Join(each, ", ")
		}))
	}
	return []Column{
		name(),
		{Name: "Role", Type: "string", Description: roleRef, cell: func(i item) any { return i.text("roleRef", "kind") + "/" + i.text("roleRef", "name") }},
		age(),
		subjects("Users", rbacv1.UserKind), subjects("Groups", rbacv1.GroupKind), subjects("ServiceAccounts", rbacv1.ServiceAccountKind),
	}
}

// definition is what is shown of a CRD, whose Go type is not in client-go's graph.
type definition struct {
	Spec struct {
		Versions []struct {
			Name    string `json:"name"`
			Served  bool   `json:"served"`
			Storage bool   `json:"storage"`
		} `json:"versions"`
		Names struct {
			ShortNames []string `json:"shortNames"`
		} `json:"names"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

func definitions() []Column {
	established := typed("Established", "Established status", func(d *definition, _ item) any {
		for _, c := range d.Status.Conditions {
			if c.Type == "Established" && c.Status == "True" {
				return true
			}
		}
		return false
	})
	established.Type = "boolean"
	return []Column{
		name(),
		text("Scope", "Cluster/Namespaced", "spec", "scope"),
		typed("Versions", "Served versions", func(d *definition, _ item) any {
			var each []string
			for _, v := range d.Spec.Versions {
				switch {
				case !v.Served:
				case v.Storage:
					each = append(each, v.Name+"(storage)")
				default:
					each = append(each, v.Name)
				}
			}
			return strings.Join(each, ",")
		}),
		created(),
		wide(text("Group", "API group", "spec", "group")),
		wide(text("Kind", "CustomResource kind", "spec", "names", "kind")),
		wide(typed("ShortNames", "Short names", func(d *definition, _ item) any { return strings.Join(d.Spec.Names.ShortNames, ",") })),
		wide(established),
	}
}

func services() []Column {
	spec := corev1.ServiceSpec{}.SwaggerDoc()
	return []Column{
		name(),
		text("Type", spec["type"], "spec", "type"),
		typed("Cluster-IP", spec["clusterIP"], func(s *corev1.Service, _ item) any {
			if len(s.Spec.ClusterIPs) > 0 {
				return s.Spec.ClusterIPs[0]
			}
			return none
		}),
		typed("External-IP", spec["externalIPs"], func(s *corev1.Service, _ item) any { return externalIP(s) }),
		typed("Port(s)", spec["ports"], func(s *corev1.Service, _ item) any { return ports(s) }),
		age(),
		wide(typed("Selector", spec["selector"], func(s *corev1.Service, _ item) any { return labels.FormatLabels(s.Spec.Selector) })),
	}
}

// none is what stands for something that there is not.
const none = "<none>"

func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

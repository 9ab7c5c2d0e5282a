package contract

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tetherkube/tether"
)

var groupVersion = schema.GroupVersion{Group: "shop.example.com", Version: "v1"}

// Gadget is a user's type, with everything that a status may have.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GadgetSpec   `json:"spec,omitempty"`
	Status            GadgetStatus `json:"status,omitempty"`
}

// GadgetSpec is what is wanted.
type GadgetSpec struct {
	Color string   `json:"color,omitempty"`
	Size  int      `json:"size,omitempty"`
	Parts []string `json:"parts,omitempty"`
}

// GadgetStatus is what a controller says.
type GadgetStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	SerialNumber       string             `json:"serialNumber,omitempty"` // the id of what stands outside
	Note               string             `json:"note,omitempty"`
	Count              int                `json:"count,omitempty"`
	Tags               map[string]string  `json:"tags,omitempty"`
}

// copies counts the deep copies of each Gadget, by UID.
var copies sync.Map

func copiesOf(uid types.UID) *atomic.Int64 {
	n, _ := copies.LoadOrStore(uid, new(atomic.Int64))
	return n.(*atomic.Int64)
}

// DeepCopyObject copies, and counts that it did.
func (g *Gadget) DeepCopyObject() runtime.Object {
	copiesOf(g.UID).Add(1)
	return g.clone()
}

// clone copies without being counted.
func (g *Gadget) clone() *Gadget {
	c := *g
	g.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec.Parts = slices.Clone(g.Spec.Parts)
	c.Status.Tags = maps.Clone(g.Status.Tags)
	c.Status.Conditions = slices.Clone(g.Status.Conditions)
	return &c
}

// Depot is a cluster-scoped type whose status has neither conditions nor an
// observed generation.
type Depot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              DepotSpec    `json:"spec,omitempty"`
	Status            *DepotStatus `json:"status,omitempty"`
}

// DepotSpec is what is wanted.
type DepotSpec struct {
	City string `json:"city,omitempty"`
}

// DepotStatus is what a controller says.
type DepotStatus struct {
	Greeting string `json:"greeting,omitempty"`
}

// DeepCopyObject copies.
func (d *Depot) DeepCopyObject() runtime.Object {
	c := *d
	d.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	if d.Status != nil {
		status := *d.Status
		c.Status = &status
	}
	return &c
}

// Part is a type without a status: a Gadget is made of Parts.
type Part struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PartSpec `json:"spec,omitempty"`
}

// PartSpec is what is wanted.
type PartSpec struct {
	Material string `json:"material,omitempty"`
	For      string `json:"for,omitempty"` // the Gadget's name
}

// DeepCopyObject copies.
func (p *Part) DeepCopyObject() runtime.Object {
	c := *p
	p.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

var (
	gadgets = tether.Resource[*Gadget]{GroupVersion: groupVersion, Kind: "Gadget", Plural: "gadgets"}
	depots  = tether.Resource[*Depot]{GroupVersion: groupVersion, Kind: "Depot", Plural: "depots", ClusterScoped: true}
	parts   = tether.Resource[*Part]{GroupVersion: groupVersion, Kind: "Part", Plural: "parts"}
)

// definition says how a CustomResourceDefinition of the tests differs from others.
type definition struct {
	Group, Kind, Plural string
	ClusterScoped       bool
	NoStatus            bool // it has no status subresource
}

func (d definition) name() string { return d.Plural + "." + d.Group }

func (d definition) object() map[string]any {
	scope := "Namespaced"
	if d.ClusterScoped {
		scope = "Cluster"
	}
	open := func(properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": properties}
	}
	version := map[string]any{
		"name": "v1", "served": true, "storage": true,
		"schema": map[string]any{"openAPIV3Schema": map[string]any{
			"type": "object",
			"properties": map[string]any{
				"spec":   open(map[string]any{"color": map[string]any{"type": "string"}}),
				"status": open(nil),
			},
		}},
		"selectableFields": []any{map[string]any{"jsonPath": ".spec.color"}},
	}
	if !d.NoStatus {
		version["subresources"] = map[string]any{"status": map[string]any{}}
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": d.name()},
		"spec": map[string]any{
			"group": d.Group, "scope": scope, "versions": []any{version},
			"names": map[string]any{"kind": d.Kind, "plural": d.Plural},
		},
	}
}

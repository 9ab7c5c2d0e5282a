package tether

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tetherkube/tether/internal/protocol"
)

// References tell under which references the things of one controller stand
// outside, in one cluster. They are for tools beside the controller: one that
// audits the outside, or carries objects to another cluster. They send nothing; all
// methods may be called concurrently.
type References struct {
	identity protocol.Identity
	claim    string // the annotation's name
}

// References are those of a controller that [Manage] made, in the cluster of this
// id: see [ClusterID] and ManageOptions.ClusterID. The controller need not run.
func (c *Controller) References(clusterID string) References {
	return c.engine.references(clusterID)
}

func (c *controller[T]) references(clusterID string) References {
	if c.in == nil {
		return References{}
	}
	return References{
		identity: protocol.Identity{
			Controller: c.finalizerName(), Cluster: clusterID, Group: c.in.resource.GroupVersion.Group, Kind: c.in.resource.Kind,
		},
		claim: c.claimName(),
	}
}

// Of is the reference of an object's n-th thing, counted from 1, as the controller
// derives it for an object that claims nothing yet. It depends on the object's
// namespace, name and UID alone.
func (r References) Of(obj metav1.Object, n int) string {
	return r.identity.Reference(protocol.Claim{
		Controller: r.identity.Controller, Cluster: r.identity.Cluster,
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: string(obj.GetUID()),
	}, n)
}

// InCluster tells whether a reference was derived in this cluster, for whatever
// object and controller.
func (r References) InCluster(reference string) bool {
	return strings.HasPrefix(reference, protocol.ClusterPrefix(r.identity.Cluster))
}

// Claim is what an object says of what stands for it outside.
type Claim struct {
	// Cluster is the id of the cluster that it was written in.
	Cluster string
	// UID is the one that the references are made from. It is the value of the
	// annotation "<Domain>/<Name>.new" that drops this claim.
	UID types.UID
	// References are those that the claim derives, latest first: of what stands, of
	// what stood lately, and of what may stand soon.
	References []string
}

// Claim reads an object's claim, which may be one of another cluster. Without one
// it is zero and no error; one that cannot be read is an error.
func (r References) Claim(obj metav1.Object) (Claim, error) {
	raw, ok := obj.GetAnnotations()[r.claim]
	if !ok {
		return Claim{}, nil
	}
	c, err := protocol.ParseClaim(raw)
	if err != nil {
		return Claim{}, fmt.Errorf("annotation %s: %w", r.claim, err)
	}
	return Claim{Cluster: c.Cluster, UID: types.UID(c.UID), References: r.identity.Around(c)}, nil
}

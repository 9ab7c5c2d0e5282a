package protocol

import (
	"fmt"
	"slices"
)

// Decide tells the next step. It is pure: the same View gives the same Step. The
// numbers in comments are those of the package's table.
func Decide(v View) Step {
	if s, ends := v.whose(); ends {
		return s
	}
	s, ends := v.claim()
	if ends {
		return s
	}
	if v.Object.Deleting {
		return v.leave()
	}
	return v.want()
}

// whose answers rules 1 to 3 and 5: is there anything to decide at all.
func (v *View) whose() (Step, bool) {
	o := v.Object
	switch {
	case !o.Exists, // 1
		o.Deleting && v.Claimed && v.Claim.Released && !o.Finalizer, // both went in one PATCH: with the finalizer it is a person's word
		o.Deleting && !o.Finalizer && !v.Claimed && v.Status.ID == "":
		return finish(Nothing, "", ""), true
	case o.Deleting && (v.Ask.Orphan || v.Policy.ObserveOnly): // 2
		return Step{Do: Release, Claim: v.Claim, Warning: EventOrphaned, Note: "released; what stands outside was left untouched"}, true
	case v.Ask.Invalid != "":
		return stalled(ReasonInvalidAnnotation, v.Ask.Invalid), true
	case v.Ask.Paused || v.Policy.ObserveOnly: // 3
		return v.observe(), true
	case v.Invalid != "" && !v.Claimed && !o.Deleting:
		s := stalled("", v.Invalid) // the Validator's own reason is the executor's to add
		return s, true
	case v.BadClaim != "" && v.Newer: // 5
		return stalled(ReasonNewerClaim, v.BadClaim+"; run the newer program, or release the object with the orphan annotation"), true
	case v.BadClaim != "":
		return stalled(ReasonInvalidClaim, v.BadClaim+"; take the annotation off: the claim is then made again from what is known and what stands outside"), true
	}
	return Step{}, false
}

// observe looks once and leaves all alone.
func (v *View) observe() Step {
	waits := ""
	if v.Object.Deleting {
		waits = "; the deletion waits until it is not paused any more"
	}
	var sight Sight
	switch l := v.byID(v.Status.ID); {
	case v.Status.ID == "":
	case l == nil:
		return Step{Do: LookUp, ID: v.Status.ID}
	case l.Failed:
		return finish(CannotSay, "", "")
	default:
		sight = l.Sight
	}
	reason, message := ReasonPaused, "paused: observed, and left as it is"+waits
	if v.Policy.ObserveOnly {
		reason, message = ReasonObserveOnly, "observed, and left as it is: "+sight.State.String()
	}
	s := finish(Observed, reason, message)
	s.End.Live = sight.State.Live()
	return s
}

// claim answers rules 6 to 8: whose claim it is, and what it must become before
// anything else. While the object is being deleted nothing is written: what would
// have been counts, in v.Claim.
func (v *View) claim() (Step, bool) {
	if !v.Claimed {
		return v.noClaim(false)
	}
	c, o := v.Claim, v.Object
	switch { // 6
	case c.Owner == o.UID && !v.ownCluster(c):
		return stalled(ReasonClusterIDChanged, fmt.Sprintf("the claim was made in cluster %q, this one is %q; give the controller that cluster's id again (ManageOptions.ClusterID), or list it among the former ones (FormerClusterIDs)", c.Cluster, v.Identity.Cluster)), true
	case c.Owner != o.UID && v.Object.OwnerLives:
		return v.noClaim(true)
	case !v.Own(c):
		if v.Ask.New == c.UID {
			return v.noClaim(true)
		}
		return stalled(ReasonForeignClaim, fmt.Sprintf("the claim is of controller %q, for %s/%s in cluster %q, and this is %q, for %s/%s in cluster %q; what stands outside by that claim is not touched; to let the claim go, and have another one made beside what it stands for, annotate the object with %s=%s",
			c.Controller, c.Namespace, c.Name, c.Cluster, v.Identity.Controller, v.Object.Namespace, v.Object.Name, v.Identity.Cluster, v.annotation("new"), c.UID)), true
	case c.Scope != "" && v.Outside.Scope != "" && c.Scope != v.Outside.Scope: // 7
		return stalled(ReasonScopeChanged, fmt.Sprintf("the credentials reach %q, and what stands outside was made in %q, where absence cannot be seen; give the former credentials back", v.Outside.Scope, c.Scope)), true
	}
	next, warning, note := c, "", ""
	if c.Owner != o.UID { // 7
		next.Owner, next.Seen, warning, note = o.UID, true, WarningRestored, "restored under a new UID: what stood outside for the old one counts for this one"
	}
	if c.Holder != v.Holder {
		if !v.Memory.Took.IsZero() && !v.passed(v.Memory.Took) {
			return stalled(ReasonTwoControllers, fmt.Sprintf("the claim goes back and forth between %s and %s: two controllers run on this object; stop one", holder(c.Holder), holder(v.Holder))), true
		}
		next.Holder, warning, note = v.Holder, WarningHolderChanged, fmt.Sprintf("taken over from %s by %s", holder(c.Holder), holder(v.Holder))
	}
	if warning == "" && v.remembers() && c != v.Memory.Claim { // 8
		next, warning, note = v.Memory.Claim, WarningClaimChanged, "someone changed the claim; it was put back"
	}
	if o.Deleting {
		v.Claim = next
		return Step{}, false
	}
	switch {
	case next == c && o.Finalizer && !o.FormerName:
		return Step{}, false
	case next == c && !o.FormerName: // without it a deletion would not wait for what stands outside
		warning, note = WarningFinalizerRemoved, "someone took the finalizer off; it was put back"
	}
	return Step{Do: WriteClaim, Claim: next, Warning: warning, Note: note}, true
}

func holder(lease string) string {
	if lease == "" {
		return "a controller without a lease"
	}
	return "the holder of lease " + lease
}

// annotation is the name under which people answer this controller.
func (v *View) annotation(what string) string { return v.Identity.Controller + "." + what }

func (v *View) ownCluster(c Claim) bool {
	return c.Cluster == v.Identity.Cluster || slices.Contains(v.Former, c.Cluster)
}

// Own tells whether a claim is this controller's, for an object of this name
// (rule 6).
func (v *View) Own(c Claim) bool {
	return v.ownCluster(c) && (c.Controller == v.Identity.Controller || slices.Contains(v.FormerNames, c.Controller)) &&
		c.Namespace == v.Object.Namespace && c.Name == v.Object.Name
}

// remembers: there is a claim to put back. One that is not own is left alone where
// it stands, and never put in the place of what a person put right.
func (v *View) remembers() bool { return v.Memory.HasClaim && v.Own(v.Memory.Claim) }

// noClaim is rule 8 where there is no claim, or none that counts.
func (v *View) noClaim(dropped bool) (Step, bool) {
	o, m := v.Object, v.Memory
	v.Claim = v.birth()
	switch {
	case v.remembers() && !dropped:
		v.Claim = m.Claim
		if o.Deleting {
			return Step{}, false
		}
		return Step{Do: WriteClaim, Claim: m.Claim, Warning: WarningClaimChanged, Note: "someone removed the claim; it was put back"}, true
	case !dropped && v.newborn():
		return Step{Do: WriteClaim, Claim: v.Claim, Birth: true}, true
	case o.Deleting:
		v.Claim.Seen = v.Status.ID != ""
		return Step{}, false
	}
	if since, unsettled := v.unsettled(); unsettled {
		message := "no claim is on the object, and it is not new: calls of an earlier controller may still land"
		if dropped {
			message = "the claim on the object is another one's, and does not count: calls of an earlier controller for this one may still land"
		}
		return v.waiting(ReasonSettling, message, since), true
	}
	if dropped {
		v.Claim.Answered.New = v.Ask.New
	}
	w, ok := v.walk(1)
	found := v.Claim
	switch {
	case !ok:
		return v.first, true
	case len(w.live) > 1:
		found.Incarnation, found.Next, found.ID, found.Seen = w.live[0].Own, w.live[1].Own, w.live[0].ID, true
	case len(w.live) == 1:
		found.Incarnation, found.Seen = w.live[0].Own, true
	case w.last > 0:
		found.Incarnation, found.Seen = w.last, true
	case o.Finalizer && !dropped && v.Ask.New == o.UID:
		found.Answered.New = v.Ask.New // an answer acts once
	case o.Finalizer && !dropped:
		return stalled(ReasonClaimLost, fmt.Sprintf("the claim is gone and nothing is found outside; to start anew, annotate the object with %s=%s; to give it up, delete it with the orphan annotation", v.annotation("new"), o.UID)), true
	}
	first := Step{Do: WriteClaim, Claim: found}
	if found.Seen {
		first.Warning, first.Note = WarningClaimRebuilt, "the claim was gone; it was made again from what stands outside"
	}
	return first, true
}

// Effective is the claim that references derive from: the stored one, as far as it
// counts, or what would be written.
func Effective(v View) Claim {
	if v.Claimed && v.BadClaim == "" {
		v.claim()
	} else {
		v.noClaim(false)
	}
	return v.Claim
}

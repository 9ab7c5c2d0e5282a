package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tetherkube/tether"
	"github.com/tetherkube/tether/internal/e2e/controlplane"
)

func TestClaimAndFinalizerComeInOnePatchBeforeACreateThatLooksForNothing(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{})
	made := b.gadget(t, "one", `{"spec":{"color":"red","size":3}}`)
	g := b.await(t, "one", "ready", ready)
	b.hooks.ending(t, 1, "one")
	b.one(t, "one")
	want := []string{"PATCH gadgets one 200", "create one", "PATCH gadgets/status one 200"}
	if diff := cmp.Diff(want, b.wire.lines(about("one"))); diff != "" {
		t.Errorf("what happened (-want +got):\n%s", diff)
	}
	var patch struct {
		Metadata struct {
			ResourceVersion string
			Finalizers      []string
			Annotations     map[string]string
		}
	}
	if err := json.Unmarshal([]byte(b.wire.log.all(ended(writes("gadgets")))[0].Body), &patch); err != nil {
		t.Fatal(err)
	}
	m := patch.Metadata
	if m.ResourceVersion != made.ResourceVersion || !cmp.Equal(m.Finalizers, []string{ourFinalizer}) || m.Annotations[claimName] != g.Annotations[claimName] {
		t.Errorf("the first write was %+v", m)
	}
	claim := tells(t, g)
	for field, want := range map[string]any{
		"v": 1.0, "controller": ourFinalizer, "namespace": b.namespace, "name": "one", "uid": string(g.UID), "owner": string(g.UID),
		"incarnation": 1.0, "attempt": 1.0, "guarantee": "UniqueReference", "window": "1m0s",
	} {
		if claim[field] != want {
			t.Errorf("the claim says %s: %v, want %v", field, claim[field], want)
		}
	}
}

func TestALifeCostsThreePatches(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{options: tether.ManageOptions[*Gadget]{Options: tether.Options{Workers: 4}}})
	const lives = 8
	for i := range lives {
		g := b.book(t, fmt.Sprint("life-", i), `{"spec":{"size":1}}`)
		b.remove(t, g.Name)
		b.awaitGone(t, g.UID, g.Name)
	}
	if left := b.shop.standing(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
	audit, err := cluster.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := audit.Requests(func(r controlplane.Request) bool {
		return r.Object.Namespace == b.namespace && strings.HasPrefix(r.Object.Name, "life-") && r.Object.Resource == "gadgets"
	})
	if err != nil {
		t.Fatal(err)
	}
	got := controlplane.ByVerb(controlplane.Complete(all))
	// Creates, deletes and what a test watches are the test's own.
	want := map[string]int{"create gadgets": lives, "delete gadgets": lives, "patch gadgets": 2 * lives, "patch gadgets/status": lives}
	for _, mine := range []string{"watch gadgets", "list gadgets"} {
		delete(got, mine)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	for _, r := range all {
		if r.Response.Code >= http.StatusBadRequest {
			t.Errorf("%s %s: %d %s", r.Verb, r.URI, r.Response.Code, r.Response.Reason)
		}
	}
}

func TestAClaimWhoseAnswerWasLostIsReadAndGoneOnWith(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{})
	b.wire.lose(after, 1, to(http.MethodPatch, "gadgets", "one"))
	b.book(t, "one", `{"spec":{"size":1}}`)
	b.hooks.ending(t, 1, "one")
	b.one(t, "one")
	want := []string{"PATCH gadgets one 0", "GET gadgets one 200", "create one", "PATCH gadgets/status one 200"}
	if diff := cmp.Diff(want, b.wire.lines(about("one"))[:4]); diff != "" {
		t.Errorf("what happened (-want +got):\n%s", diff)
	}
	b.quiet(t)
	if n := len(b.shop.called("create", "one")); n != 1 {
		t.Errorf("created %d times", n)
	}
	if lines := b.log.errors(); len(lines) > 0 {
		t.Errorf("logged as errors: %q", lines)
	}
}

// Line 5.
func TestAClaimWhoseEventComesBeforeItsAnswerStartsNoPass(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{})
	answer := b.wire.hold(after, 1, to(http.MethodPatch, "gadgets", "one"))
	b.gadget(t, "one", `{"spec":{"size":1}}`)
	answer.reached(t)
	b.wire.events.nth(t, 2, "the claim's event", of("gadgets", "one"))
	name := b.post(t) // an event after it, so that it was taken
	b.wire.came(t, "the event after it", of("gadgets", name))
	answer.release()
	b.await(t, "one", "ready", ready)
	b.hooks.ending(t, 1, "one")
	b.quiet(t)
	b.one(t, "one")
	if n := len(b.hooks.passes.all(passesOf("one"))); n != 1 {
		t.Errorf("%d passes", n)
	}
	if calls := b.shop.called("", "one"); len(calls) != 1 {
		t.Errorf("calls: %+v", calls)
	}
}

func TestAFinalizerThatSomeoneRemovedIsPutBack(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{})
	g := b.book(t, "one", `{"spec":{"size":1}}`)
	b.patch(t, "one", `{"metadata":{"finalizers":null}}`)
	b.await(t, "one", "held again", lasts)
	b.awaitEvents(t, 1, "one", "FinalizerRemoved")
	b.quiet(t)
	b.one(t, "one")
	if now := b.get(t, "one"); now.Annotations[claimName] != g.Annotations[claimName] {
		t.Errorf("the claim is %s", now.Annotations[claimName])
	}
	b.remove(t, "one")
	b.awaitGone(t, g.UID, "one")
	if left := b.shop.standing(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestNothingIsCreatedBeforeTheClaimIsStored(t *testing.T) {
	t.Parallel()
	for name, break_ := range map[string]func(*bench){
		"lost on the way": func(b *bench) { b.wire.lose(before, 2, to(http.MethodPatch, "gadgets", "one")) },
		"refused": func(b *bench) {
			b.wire.refuse(2, http.StatusInternalServerError, to(http.MethodPatch, "gadgets", "one"))
		},
		"in conflict": func(b *bench) { b.wire.refuse(2, http.StatusConflict, to(http.MethodPatch, "gadgets", "one")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := manageUp(t, managing{})
			break_(b)
			b.book(t, "one", `{"spec":{"size":1}}`)
			b.one(t, "one")
			claimed := false
			for _, line := range b.wire.lines(about("one")) {
				claimed = claimed || line == "PATCH gadgets one 200"
				if line == "create one" && !claimed {
					t.Errorf("created without a claim: %v", b.wire.lines(about("one")))
				}
			}
		})
	}
}

func TestAClaimThatSomeoneRemovedOrChangedIsPutBackWithAWarning(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]func(*Gadget) any{
		"removed": func(*Gadget) any { return nil },
		"changed": func(g *Gadget) any {
			return strings.Replace(g.Annotations[claimName], `"incarnation":1`, `"incarnation":7`, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := manageUp(t, managing{})
			g := b.book(t, "one", `{"spec":{"size":1}}`)
			b.annotate(t, "one", claimName, value(g))
			b.await(t, "one", "claimed again", func(now *Gadget) bool { return now.Annotations[claimName] == g.Annotations[claimName] })
			for _, e := range b.awaitEvents(t, 1, "one", "ClaimChanged") {
				if e.Object["type"] != "Warning" {
					t.Errorf("the Event is %v", e.Object)
				}
			}
			b.quiet(t)
			b.one(t, "one")
			if n := len(b.shop.called("create", "one")); n != 1 {
				t.Errorf("created %d times", n)
			}
		})
	}
}

func TestAClaimThatIsTakenOffWhileTheCallIsMadeIsPutBackAndNothingIsMadeTwice(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{options: tether.ManageOptions[*Gadget]{CallTimeout: time.Second, Settle: time.Second}})
	wait, reached, release := held()
	b.shop.next("create", after, wait)
	b.gadget(t, "one", `{"spec":{"size":1}}`)
	received(t, reached, "the create")
	was := b.get(t, "one").Annotations[claimName]
	b.annotate(t, "one", claimName, nil)
	close(release)
	b.await(t, "one", "claimed again, and ready", func(g *Gadget) bool { return ready(g) && g.Annotations[claimName] == was })
	b.awaitEvents(t, 1, "one", "ClaimChanged")
	b.quiet(t)
	b.one(t, "one")
	if n := len(b.shop.called("create", "one")); n != 1 {
		t.Errorf("created %d times", n)
	}
}

func TestACopyOfAnObjectWithItsAnnotationsHasAThingOfItsOwn(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{options: tether.ManageOptions[*Gadget]{CallTimeout: time.Second, Settle: time.Second}})
	first := b.book(t, "first", `{"spec":{"color":"red","size":1}}`)
	claim, err := json.Marshal(first.Annotations[claimName])
	if err != nil {
		t.Fatal(err)
	}
	second := b.book(t, "second", fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}},"spec":{"color":"blue","size":2}}`, claimName, claim))
	all := b.shop.standing()
	if len(all) != 2 || all[0].Reference == all[1].Reference || all[0].Color != "red" || all[1].Color != "blue" || second.Status.SerialNumber != all[1].ID {
		t.Errorf("machines %+v; status of the copy %+v", all, second.Status)
	}
	if c := tells(t, second); c["owner"] != string(second.UID) || c["uid"] != string(second.UID) || c["name"] != "second" {
		t.Errorf("the copy's claim is %v", c)
	}
	b.remove(t, "second")
	b.awaitGone(t, second.UID, "second")
	if left := b.shop.standing(); len(left) != 1 || left[0].ID != first.Status.SerialNumber {
		t.Errorf("after the copy has gone, there are %+v", left)
	}
}

func TestWhoWritesAnothersIDIntoStatusLearnsNothingByIt(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{})
	rich := b.book(t, "rich", `{"spec":{"size":1}}`)
	poor := b.book(t, "poor", `{"spec":{"size":1}}`)
	b.gadget(t, "paused", `{"metadata":{"annotations":{"shop.example.com/paused":"true"}},"spec":{"size":1}}`)
	for _, name := range []string{"poor", "paused"} {
		b.patch(t, name, fmt.Sprintf(`{"status":{"serialNumber":%q}}`, rich.Status.SerialNumber), "status")
	}
	b.await(t, "poor", "put right", func(g *Gadget) bool { return g.Status.SerialNumber == poor.Status.SerialNumber })
	for range 2 { // what stood before the first look may have been of before
		b.quiet(t)
	}
	if len(b.shop.called("observe", "poor")) == 0 || len(b.shop.called("observe", "paused")) == 0 {
		t.Error("nobody looked")
	}
	for _, e := range b.wire.log.all(ended(func(q request) bool { return q.Name == "poor" || q.Name == "paused" })) {
		if strings.Contains(e.Body, rich.Status.Note) {
			t.Errorf("%s tells of another's machine: %s", e, e.Body)
		}
	}
	if got := b.get(t, "poor").Status.Note; got != poor.Status.Note {
		t.Errorf("status says %q", got)
	}
	if n := len(b.shop.standing()); n != 2 {
		t.Errorf("%d machines stand", n)
	}
}

func TestAClaimThatCannotBeActedOnIsStalledByNameAndNothingIsCalled(t *testing.T) {
	t.Parallel()
	for reason, claim := range map[string]string{
		"InvalidClaim": `{"v":1,"incarnation":"one"}`,
		"NewerClaim":   `{"v":2}`,
		"ForeignClaim": `{"v":1,"controller":"shop.example.com/gadget","cluster":"another","namespace":"there","name":"one","uid":"old","owner":"old",` +
			`"incarnation":1,"attempt":1,"guarantee":"UniqueReference","window":"1m0s"}`,
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			b := manageUp(t, managing{})
			value, err := json.Marshal(claim)
			if err != nil {
				t.Fatal(err)
			}
			uid := b.gadget(t, "one", fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}},"spec":{"size":1}}`, claimName, value)).UID
			if message := b.stalled(t, "one", reason); message == "" {
				t.Error("without a remedy")
			}
			b.quiet(t)
			if calls := b.shop.called("", "one"); len(calls) > 0 {
				t.Errorf("called: %+v", calls)
			}
			if got := b.get(t, "one").Annotations[claimName]; got != claim {
				t.Errorf("the claim was rewritten: %s", got)
			}
			b.annotate(t, "one", "shop.example.com/orphan", "true")
			b.remove(t, "one")
			b.awaitGone(t, uid, "one")
		})
	}
}

func TestAClusterThatIsCalledOtherwiseIsStalledUntilItsOldNameIsTold(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{options: tether.ManageOptions[*Gadget]{ClusterID: "old-name"}})
	g := b.book(t, "one", `{"spec":{"size":1}}`)
	b = b.again(t, func(m *managing) { m.options.ClusterID = "new-name" })
	message := b.stalled(t, "one", "ClusterIDChanged")
	for _, word := range []string{"old-name", "new-name", "FormerClusterIDs"} {
		if !strings.Contains(message, word) {
			t.Errorf("%q does not name %s", message, word)
		}
	}
	b = b.again(t, func(m *managing) { m.options.FormerClusterIDs = []string{"old-name"} })
	b.await(t, "one", "ready", ready)
	if m := b.one(t, "one"); m.ID != g.Status.SerialNumber || len(b.shop.called("create", "one")) != 1 {
		t.Errorf("it is %+v, calls %+v", m, b.shop.called("", "one"))
	}
}

func TestAWebhookThatStripsTheClaimIsNamedAndNothingIsCreated(t *testing.T) {
	t.Parallel()
	for name, strip := range map[string]func(meta map[string]any){
		"the claim": func(meta map[string]any) { delete(meta, "annotations") },
		"the finalizer": func(meta map[string]any) {
			delete(meta, "finalizers")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := manageUp(t, managing{})
			lift := b.wire.edit(always, to(http.MethodPatch, "gadgets", "one"), func(obj map[string]any) {
				strip(obj["metadata"].(map[string]any))
			})
			b.gadget(t, "one", `{"spec":{"size":1}}`)
			if message := b.stalled(t, "one", "ClaimStripped"); !strings.Contains(message, "webhook") {
				t.Errorf("it says %q", message)
			}
			if calls := b.shop.called("", "one"); len(calls) > 0 {
				t.Errorf("called: %+v", calls)
			}
			lift()
			b.annotate(t, "one", "shop.example.com/reconcile-at", "now")
			b.await(t, "one", "ready", ready)
			b.one(t, "one")
		})
	}
}

func TestAnObjectThatIsInvalidOrPausedHasNeitherClaimNorFinalizer(t *testing.T) {
	t.Parallel()
	hasty := tether.ManageOptions[*Gadget]{CallTimeout: time.Second, Settle: time.Second}
	b := manageUp(t, managing{options: hasty, external: func(w *workshop) tether.External[*Gadget] {
		return picky{w, func(g *Gadget) error {
			if g.Spec.Size == 0 {
				return tether.Reason("NoSize", fmt.Errorf("spec.size is missing; give one"))
			}
			return nil
		}}
	}})
	b.gadget(t, "invalid", `{}`)
	if message := b.stalled(t, "invalid", "NoSize"); message != "invalid: spec.size is missing; give one" {
		t.Errorf("it says %q", message)
	}
	b.gadget(t, "paused", `{"metadata":{"annotations":{"shop.example.com/paused":"true"}},"spec":{"size":1}}`)
	b.await(t, "paused", "paused", is("Reconciling", "True", "Paused"))
	b.quiet(t)
	for _, name := range []string{"invalid", "paused"} {
		if g := b.get(t, name); lasts(g) || g.Annotations[claimName] != "" {
			t.Errorf("%s has %v, %v", name, g.Finalizers, g.Annotations)
		}
		if calls := b.shop.called("", name); len(calls) > 0 {
			t.Errorf("%s: called %+v", name, calls)
		}
	}
	b.patch(t, "invalid", `{"spec":{"size":1}}`)
	b.annotate(t, "paused", "shop.example.com/paused", nil)
	for _, name := range []string{"invalid", "paused"} {
		b.await(t, name, "ready", ready)
	}
	if n := len(b.shop.standing()); n != 2 {
		t.Errorf("%d machines stand", n)
	}
}

func waitsForEver(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// Line 10.
func TestAnObjectWithoutItsFinalizerIsFinishedWhereItsClaimSaysThatSomethingIsOutside(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{options: tether.ManageOptions[*Gadget]{CallTimeout: time.Second, Settle: time.Second}})
	b.book(t, "one", `{"spec":{"size":1}}`)
	if err := b.run.end(t); err != nil {
		t.Fatal(err)
	}
	b.patch(t, "one", `{"metadata":{"finalizers":["example.com/of-another"]}}`)
	b.remove(t, "one")
	n := manageOn(t, b, b.made)
	n.hooks.calls.await(t, 1, "the end of its thing", func(c tether.CallInfo) bool { return c.Verb == "delete" && c.Outcome == "done" })
	if left := n.shop.standing(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
	n.await(t, "one", "released", func(g *Gadget) bool { return strings.Contains(g.Annotations[claimName], `"released":true`) })
}

// Line 10.
func TestAReleaseIsNotSettledOverAClaimThatSomeoneChanged(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{})
	g := b.book(t, "one", `{"spec":{"size":1}}`)
	release, second := b.wire.hold(before, 1, to(http.MethodPatch, "gadgets", "one")), b.wire.hold(before, 2, to(http.MethodPatch, "gadgets", "one"))
	b.remove(t, "one")
	release.reached(t)
	b.annotate(t, "one", claimName, strings.Replace(g.Annotations[claimName], `"incarnation":1`, `"incarnation":7`, 1))
	looks := len(b.hooks.calls.all(nil))
	release.release()
	b.hooks.passes.await(t, 1, "the pass that meets the change", func(p tether.PassInfo) bool { return p.Key.Name == "one" && p.Outcome == "again" })
	second.reached(t)
	if now := b.get(t, "one"); !lasts(now) {
		t.Errorf("it was released, with claim %s", now.Annotations[claimName])
	}
	if len(b.hooks.calls.all(nil)) == looks {
		t.Error("what was changed is released without another look")
	}
	second.release()
}

// Line 8.
func TestAStatusIsNotSettledOverAClaimThatSomeoneChanged(t *testing.T) {
	t.Parallel()
	b := manageUp(t, managing{})
	status := b.wire.hold(before, 1, to(http.MethodPatch, "gadgets/status", "one"))
	b.gadget(t, "one", `{"spec":{"size":1}}`)
	status.reached(t)
	was := b.get(t, "one").Annotations[claimName]
	b.annotate(t, "one", claimName, strings.Replace(was, `"incarnation":1`, `"incarnation":7`, 1))
	status.release()
	if p := b.hooks.ending(t, 1, "one"); p.Outcome != "again" {
		t.Errorf("the pass ended in %q", p.Outcome)
	}
	b.await(t, "one", "claimed again, and ready", func(g *Gadget) bool { return ready(g) && g.Annotations[claimName] == was })
	b.one(t, "one")
}

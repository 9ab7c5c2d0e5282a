package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// forgery is what a tenant writes into an object of his to get at another's.
type forgery struct {
	claim      func(own, other map[string]any) // edits his own claim; nil: leaves it
	status     bool                            // the other's id into status
	annotation func(other *Gadget) (name, value string)
}

func takes(fields ...string) forgery {
	return forgery{claim: func(own, other map[string]any) {
		for _, f := range fields {
			own[f] = other[f]
		}
	}}
}

func sets(field string, value any) forgery {
	return forgery{claim: func(own, _ map[string]any) { own[field] = value }}
}

func asks(what string, value func(*Gadget) string) forgery {
	return forgery{annotation: func(other *Gadget) (string, string) {
		return ourFinalizer + "." + what, value(other)
	}}
}

func id(g *Gadget) string { return g.Status.SerialNumber }

var forgeries = map[string]forgery{
	"uid":              takes("uid"),
	"owner":            takes("owner"),
	"name":             takes("name"),
	"namespace":        sets("namespace", "of-another"),
	"cluster":          sets("cluster", "of-another"),
	"controller":       sets("controller", "shop.example.com/another"),
	"name and uid":     takes("name", "uid"),
	"uid and owner":    takes("uid", "owner"),
	"all of it":        takes("name", "uid", "owner", "cluster", "namespace", "controller"),
	"id":               {claim: func(own, other map[string]any) { own["id"] = other["told"] }},
	"id, as the old":   {claim: func(own, other map[string]any) { own["id"], own["next"] = other["told"], 2 }},
	"seen":             sets("seen", true),
	"incarnation":      sets("incarnation", 7),
	"attempt":          sets("attempt", 7),
	"next":             sets("next", 2),
	"holder":           sets("holder", "of/another"),
	"guarantee":        sets("guarantee", "None"),
	"scope":            sets("scope", "of-another"),
	"window":           sets("window", "1ns"),
	"released":         sets("released", true),
	"answered":         {claim: func(own, other map[string]any) { own["answered"] = map[string]any{"adopt": other["told"]} }},
	"status":           {status: true},
	"status and claim": {status: true, claim: func(own, other map[string]any) { own["id"], own["uid"] = other["told"], other["uid"] }},
	"adopt":            asks("adopt", id),
	"new":              asks("new", func(g *Gadget) string { return string(g.UID) }),
	"outcome":          asks("outcome", func(g *Gadget) string { return "1.1=happened:" + id(g) }),
}

// forge does it.
func (b *bench) forge(t *testing.T, f forgery, own, other *Gadget) {
	t.Helper()
	meta := map[string]any{}
	if f.claim != nil {
		mine, theirs := tells(t, own), tells(t, other)
		theirs["told"] = id(other)
		f.claim(mine, theirs)
		raw, err := json.Marshal(mine)
		if err != nil {
			t.Fatal(err)
		}
		meta[claimName] = string(raw)
	}
	if f.annotation != nil {
		name, value := f.annotation(other)
		meta[name] = value
	}
	if f.status {
		b.patch(t, own.Name, fmt.Sprintf(`{"status":{"serialNumber":%q}}`, id(other)), "status")
	}
	for name, value := range meta {
		b.annotate(t, own.Name, name, value)
	}
}

// A tenant who writes another's data into an object of his gets nothing of it: not
// from a controller that knows better, and not from one that has just started.
func TestWhoWritesAnothersDataIntoHisObjectGetsNothingOfIt(t *testing.T) {
	t.Parallel()
	for field, f := range forgeries {
		for when, started := range map[string]bool{"before a start": true, "while it runs": false} {
			t.Run(field+", "+when, func(t *testing.T) {
				t.Parallel()
				o := hasty()
				o.AllowAdopt = allow
				b := manageUp(t, managing{options: o, external: rebound})
				rich := b.book(t, "rich", `{"spec":{"color":"gold","size":1}}`)
				poor := b.book(t, "poor", `{"spec":{"size":1}}`)
				was := b.shop.standing()[0]
				if started {
					b.down(t)
				}
				b.forge(t, f, poor, rich)
				if started {
					b = b.up(t, nil)
				}
				b.looked(t, "poor")
				b.patch(t, "poor", `{"spec":{"color":"mud"}}`)
				b.await(t, "poor", "judged", func(g *Gadget) bool {
					return ready(g) || condition(g, "Stalled") != nil && condition(g, "Stalled").ObservedGeneration == g.Generation
				})
				b.remove(t, "poor")
				b.end(t, poor)
				for _, m := range b.shop.standing() {
					if m.ID == was.ID && m != was {
						t.Errorf("it is %+v, and was %+v", m, was)
					}
				}
				if all := b.shop.standing(); len(all) == 0 || all[0] != was {
					t.Errorf("machines %+v; it was %+v", all, was)
				}
				for _, e := range b.wire.log.all(ended(about("poor"))) {
					if strings.Contains(e.Body, was.Secret) {
						t.Errorf("%s tells of it: %s", e, e.Body)
					}
				}
				now := b.get(t, "rich")
				if id(now) != id(rich) || !ready(now) || condition(now, "Stalled") != nil {
					t.Errorf("rich has %+v", now.Status)
				}
				b.remove(t, "rich")
				b.awaitGone(t, rich.UID, "rich")
				for _, m := range b.shop.standing() {
					if m.ID == was.ID {
						t.Errorf("rich's machine is left: %+v", m)
					}
				}
			})
		}
	}
}

// end waits until the object goes. Where it is stuck and says why, it is orphaned.
func (b *bench) end(t *testing.T, g *Gadget) {
	t.Helper()
	ctx, cancel := patience(t, "the end of "+g.Name)
	defer cancel()
	w, err := b.on(served("gadgets")).Watch(ctx, metav1.ListOptions{
		FieldSelector:     fields.OneTermEqualSelector("metadata.name", g.Name).String(),
		SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	there, orphaned := false, false
	for {
		select {
		case e := <-w.ResultChan():
			u, ok := e.Object.(*unstructured.Unstructured)
			switch {
			case !ok:
				t.Fatalf("the watch of %s ended: %v", g.Name, e.Object)
			case e.Type == watch.Bookmark && !there, e.Type == watch.Deleted:
				return
			case e.Type == watch.Bookmark:
				continue
			}
			there = true
			now := as[Gadget](t, u)
			if c := condition(now, "Stalled"); c != nil && now.DeletionTimestamp != nil && c.ObservedGeneration == now.Generation && !orphaned {
				orphaned = true
				t.Logf("its deletion is stuck: %s: %s", c.Reason, c.Message)
				b.annotate(t, g.Name, "shop.example.com/orphan", "true")
			}
		case <-ctx.Done():
			t.Fatalf("%v; it is %+v", context.Cause(ctx), b.get(t, g.Name))
		}
	}
}

package protocol

import (
	"strings"
	"testing"
	"time"
)

func TestAClaimKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	c := Claim{V: 1, Controller: "d/c", Cluster: "x", Namespace: "ns", Name: "n", UID: "u", Owner: "u", Incarnation: 2, Attempt: 3, Next: 3, ID: "b1", Window: time.Minute, Time: 5}
	back, err := ParseClaim(c.String())
	if err != nil || back != c {
		t.Fatalf("got %+v, %v; want %+v", back, err, c)
	}
	raw := strings.TrimSuffix(c.String(), "}") + `,"later":{"a":1}}`
	back, err = ParseClaim(raw)
	if err != nil || back.String() != raw {
		t.Fatalf("got %s, %v; want %s", back, err, raw)
	}
}

func TestAWrongClaimIsToldInItsOwnWords(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`nothing`:               "not a JSON object",
		`{}`:                    `field "v" is missing`,
		`{"v":1,"next":"many"}`: `field "next" is a string`,
		`{"v":1}`:               `field "incarnation" is missing`,
	} {
		if _, err := ParseClaim(raw); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Go") {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
}

func FuzzParseClaim(f *testing.F) {
	f.Add(`{"v":1,"controller":"d/c","cluster":"x","name":"n","uid":"u","owner":"u","incarnation":1,"attempt":1,"guarantee":"","window":"1m0s"}`)
	f.Add(`{"v":2}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, raw string) {
		c, err := ParseClaim(raw)
		if err != nil {
			return
		}
		again, err := ParseClaim(c.String())
		if err != nil || again != c {
			t.Fatalf("%q reads as %+v, and then as %+v, %v", raw, c, again, err)
		}
	})
}

func TestReferencesAreShortAndDifferInEveryPart(t *testing.T) {
	t.Parallel()
	id := Identity{Controller: "d/c", Cluster: "x", Group: "g", Kind: "K"}
	base := Claim{Controller: "d/c", Cluster: "x", Namespace: "ns", Name: "n", UID: "u"}
	seen := map[string]string{}
	add := func(what, ref string) {
		t.Helper()
		if len(ref) > 63 || strings.Trim(ref, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Errorf("%s: %q is not at most 63 of [a-z0-9-]", what, ref)
		}
		if other, ok := seen[ref]; ok {
			t.Errorf("%s has the reference of %s", what, other)
		}
		seen[ref] = what
	}
	add("base", id.Reference(base, 1))
	add("incarnation", id.Reference(base, 2))
	for what, change := range map[string]func(*Claim, *Identity){
		"controller": func(c *Claim, _ *Identity) { c.Controller = "d/other" },
		"cluster":    func(c *Claim, _ *Identity) { c.Cluster = "y" },
		"namespace":  func(c *Claim, _ *Identity) { c.Namespace = "nsn" },
		"name":       func(c *Claim, _ *Identity) { c.Name = "other" },
		"shifted":    func(c *Claim, _ *Identity) { c.Namespace, c.Name = "n", "sn" },
		"uid":        func(c *Claim, _ *Identity) { c.UID = "v" },
		"group":      func(_ *Claim, i *Identity) { i.Group = "h" },
		"kind":       func(_ *Claim, i *Identity) { i.Kind = "L" },
	} {
		c, i := base, id
		change(&c, &i)
		add(what, i.Reference(c, 1))
	}
}

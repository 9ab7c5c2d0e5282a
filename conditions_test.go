package tether

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	early = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	later = early.Add(time.Hour)
)

func condition(typ string, status metav1.ConditionStatus, reason, message string, generation int64, at time.Time) metav1.Condition {
	return metav1.Condition{Type: typ, Status: status, Reason: reason, Message: message, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(at)}
}

func TestConditionsFollowKstatus(t *testing.T) {
	t.Parallel()
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	ready := func(s metav1.ConditionStatus, reason, message string, at time.Time) metav1.Condition {
		return condition(conditionReady, s, reason, message, 2, at)
	}
	done := verdict{unset: yes, reason: reasonReconciled}
	failed := verdict{ready: no, reconciling: true, reason: "Failed", message: "no luck"}
	for _, c := range []struct {
		name     string
		was, now []metav1.Condition // now nil: as was
		v        verdict
		want     []metav1.Condition
	}{
		{"done, nothing set", nil, nil, done, []metav1.Condition{ready(yes, "Reconciled", "", later)}},
		{
			"done, the author set Ready", nil,
			[]metav1.Condition{{Type: conditionReady, Status: no, Reason: "Waiting", Message: "for the sun"}},
			done,
			[]metav1.Condition{ready(no, "Waiting", "for the sun", later)},
		},
		{
			"done again, and the author's earlier Ready still counts",
			[]metav1.Condition{ready(no, "Waiting", "for the sun", early)},
			nil, done,
			[]metav1.Condition{ready(no, "Waiting", "for the sun", early)},
		},
		{
			"done, and the author's Ready was of another generation",
			[]metav1.Condition{condition(conditionReady, no, "Waiting", "", 1, early)},
			nil, done,
			[]metav1.Condition{ready(yes, "Reconciled", "", later)},
		},
		{
			"done after an error: the library's verdict goes",
			[]metav1.Condition{ready(no, "Failed", "no luck", early), condition(conditionReconciling, yes, "Failed", "no luck", 2, early)},
			nil, done,
			[]metav1.Condition{ready(yes, "Reconciled", "", later)},
		},
		{
			"an error",
			[]metav1.Condition{ready(yes, "Reconciled", "", early)},
			nil, failed,
			[]metav1.Condition{ready(no, "Failed", "no luck", later), condition(conditionReconciling, yes, "Failed", "no luck", 2, later)},
		},
		{
			"the same error with another address keeps time and wording",
			[]metav1.Condition{ready(no, "Failed", "dial 127.0.0.1:1", early), condition(conditionReconciling, yes, "Failed", "dial 127.0.0.1:1", 2, early)},
			nil,
			verdict{ready: no, reconciling: true, reason: "Failed", message: "dial 127.0.0.1:2"},
			[]metav1.Condition{ready(no, "Failed", "dial 127.0.0.1:1", early), condition(conditionReconciling, yes, "Failed", "dial 127.0.0.1:1", 2, early)},
		},
		{
			"terminal takes Reconciling away",
			[]metav1.Condition{ready(no, "Failed", "", early), condition(conditionReconciling, yes, "Failed", "", 2, early)},
			nil,
			verdict{ready: no, stalled: true, reason: "SoldOut", message: "no seat"},
			[]metav1.Condition{ready(no, "SoldOut", "no seat", early), condition(conditionStalled, yes, "SoldOut", "no seat", 2, later)},
		},
		{
			"backoff on a first pass does not know", nil, nil,
			verdict{unset: unknown, reconciling: true, reason: "Pending", message: "soon"},
			[]metav1.Condition{ready(unknown, "Pending", "soon", later), condition(conditionReconciling, yes, "Pending", "soon", 2, later)},
		},
		{
			"other conditions are left as they are",
			[]metav1.Condition{condition("Paid", yes, "Card", "", 1, early)},
			nil, done,
			[]metav1.Condition{condition("Paid", yes, "Card", "", 1, early), ready(yes, "Reconciled", "", later)},
		},
	} {
		now := c.now
		if now == nil {
			now = c.was
		}
		got := judgeConditions(c.was, now, c.v, 2, later)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		if again := judgeConditions(got, got, c.v, 2, later.Add(time.Hour)); c.now == nil && !cmp.Equal(got, again) {
			t.Errorf("%s: a second pass changes it:\n%s", c.name, cmp.Diff(got, again))
		}
	}
}

func TestAClippedMessageIsWholeRunes(t *testing.T) {
	t.Parallel()
	if got := clip("añañañaña", 8); got != "aña…" && got != "añ…" {
		t.Fatalf("got %q", got)
	}
	if got := clip("short", 8); got != "short" {
		t.Fatalf("got %q", got)
	}
}

func TestAReasonIsOneThatTheAPIServerTakes(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"SoldOut": "SoldOut", "A_b,c:d": "A_b,c:d", "sold out": "SoldOut", "no seat: none!": "NoSeatNone",
		"429": "", "2 many": "Many", "": "", "überbucht": "Berbucht", strings.Repeat("x", 2000): "X" + strings.Repeat("x", 255),
	} {
		got := reasonOf(given)
		if got != want || got != "" && !reasonForm.MatchString(got) {
			t.Errorf("%.40q: %q, want %q", given, got, want)
		}
	}
	if got := setCondition(nil, metav1.Condition{Type: conditionReady, Reason: "!"})[0].Reason; got != reasonProgressing {
		t.Errorf("where nothing is left: %q", got)
	}
}

package tether

import (
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The conditions of kstatus.
const (
	conditionReady       = "Ready"
	conditionReconciling = "Reconciling"
	conditionStalled     = "Stalled"
)

// The reasons that stand where the author gave none.
const (
	reasonReconciled     = "Reconciled"
	reasonFailed         = "Failed"
	reasonRejected       = "Rejected"
	reasonOutcomeUnknown = "OutcomeUnknown"
	reasonProgressing    = "Progressing"
)

// longestMessage bounds a condition's message, in bytes.
const longestMessage = 1024

// verdict is what a pass says of its object.
type verdict struct {
	ready       metav1.ConditionStatus // "": as the author set it, see unset
	unset       metav1.ConditionStatus // what Ready is where the author did not set it for this generation
	reconciling bool
	stalled     bool
	keep        bool // leave Reconciling and Stalled as the author set them
	reason      string
	message     string
}

// judgeConditions writes the verdict into conditions. was is what the API server
// had, in whose light an unchanged condition keeps its time and its wording.
func judgeConditions(was, now []metav1.Condition, v verdict, generation int64, at time.Time) []metav1.Condition {
	out := slices.Clone(now)
	ready := v.ready
	if ready == "" && !authored(was, now, generation) {
		ready = v.unset
	}
	if ready != "" {
		out = setCondition(out, metav1.Condition{Type: conditionReady, Status: ready, Reason: v.reason, Message: v.message})
	}
	if !v.keep {
		out = setOrDrop(out, conditionReconciling, v.reconciling, v)
		out = setOrDrop(out, conditionStalled, v.stalled, v)
	}
	for i := range out {
		c := &out[i]
		if c.Type == conditionReady || c.Type == conditionReconciling || c.Type == conditionStalled {
			c.ObservedGeneration = generation
		}
		old := findCondition(was, c.Type)
		switch {
		case old == nil || old.Status != c.Status:
			if c.LastTransitionTime.IsZero() || old != nil && c.LastTransitionTime.Equal(&old.LastTransitionTime) {
				c.LastTransitionTime = metav1.NewTime(at.Truncate(time.Second))
			}
		default:
			c.LastTransitionTime = old.LastTransitionTime
			if old.Reason == c.Reason && sameMessage(old.Message, c.Message) {
				c.Message = old.Message
			}
		}
	}
	return out
}

// authored tells whether the author set Ready for this generation: in this pass,
// or in an earlier one whose verdict was left to him.
func authored(was, now []metav1.Condition, generation int64) bool {
	c, old := findCondition(now, conditionReady), findCondition(was, conditionReady)
	switch {
	case c == nil:
		return false
	case old == nil || c.Status != old.Status || c.Reason != old.Reason || c.Message != old.Message || c.ObservedGeneration != old.ObservedGeneration:
		return true
	}
	overruled := findCondition(was, conditionReconciling) != nil || findCondition(was, conditionStalled) != nil
	return !overruled && c.ObservedGeneration == generation && c.Reason != reasonReconciled
}

// rebaseConditions does to fresh what changed from base to now, type by type; those
// of kstatus are as now says where the controller judges.
func rebaseConditions(base, now, fresh []metav1.Condition, judges bool) []metav1.Condition {
	ours := func(typ string) bool {
		return judges && (typ == conditionReady || typ == conditionReconciling || typ == conditionStalled)
	}
	out := slices.DeleteFunc(slices.Clone(fresh), func(c metav1.Condition) bool {
		return findCondition(now, c.Type) == nil && (ours(c.Type) || findCondition(base, c.Type) != nil)
	})
	for _, c := range now {
		if old := findCondition(base, c.Type); old != nil && equal(*old, c) && !ours(c.Type) {
			continue
		}
		if have := findCondition(out, c.Type); have != nil {
			*have = c
		} else {
			out = append(out, c)
		}
	}
	return out
}

func setOrDrop(list []metav1.Condition, typ string, on bool, v verdict) []metav1.Condition {
	if on {
		return setCondition(list, metav1.Condition{Type: typ, Status: metav1.ConditionTrue, Reason: v.reason, Message: v.message})
	}
	return slices.DeleteFunc(list, func(c metav1.Condition) bool { return c.Type == typ })
}

func setCondition(list []metav1.Condition, c metav1.Condition) []metav1.Condition {
	c.Message = clip(c.Message, longestMessage)
	if c.Reason = reasonOf(c.Reason); c.Reason == "" {
		c.Reason = reasonProgressing
	}
	for i := range list {
		if list[i].Type == c.Type {
			c.LastTransitionTime = list[i].LastTransitionTime
			list[i] = c
			return list
		}
	}
	return append(list, c)
}

var (
	reasonForm = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`) // metav1.Condition's
	notAWord   = regexp.MustCompile(`[^A-Za-z0-9_]+`)
)

// reasonOf makes a reason of what an author gave for one: the API server refuses a
// status with any other, and nothing would be told at all.
func reasonOf(given string) string {
	const longest = 256
	if len(given) <= longest && reasonForm.MatchString(given) {
		return given
	}
	var b strings.Builder
	for _, word := range notAWord.Split(given, -1) {
		b.WriteString(strings.ToUpper(word[:min(1, len(word))]) + word[min(1, len(word)):])
	}
	reason := strings.TrimLeft(b.String(), "0123456789_")
	return reason[:min(longest, len(reason))]
}

func findCondition(list []metav1.Condition, typ string) *metav1.Condition {
	for i := range list {
		if list[i].Type == typ {
			return &list[i]
		}
	}
	return nil
}

// clip cuts a text at a rune's border.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

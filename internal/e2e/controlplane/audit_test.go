package controlplane

import (
	"fmt"
	"testing"
)

func TestALineCutByARestartIsForgotten(t *testing.T) {
	t.Parallel()
	a := newAudit()
	const line = `{"stage":"ResponseComplete","verb":"patch","objectRef":{"resource":"tickets","subresource":"status"}}` + "\n"
	fmt.Fprint(a, line[:20])
	fmt.Fprint(a, line[20:]+line[:30])
	a.restarted()
	fmt.Fprint(a, line)
	all, err := a.Requests(func(Request) bool { return true })
	if err != nil || len(all) != 2 || ByVerb(all)["patch tickets/status"] != 2 {
		t.Errorf("%v, %v", all, err)
	}
}

func TestALineThatIsNoRecordIsAnError(t *testing.T) {
	t.Parallel()
	a := newAudit()
	fmt.Fprintln(a, "no JSON")
	if _, err := a.Requests(func(Request) bool { return true }); err == nil {
		t.Error("it went unnoticed")
	}
}

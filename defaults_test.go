package tether

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheDefaultsAreThoseThatAreDocumented(t *testing.T) {
	t.Parallel()
	c := onThings(Options{}).engine.(*controller[*thing])
	want := Options{
		Name: "thing", Domain: "example.com", Workers: 4, Timeout: 2 * time.Minute,
		MinBackoff: time.Second, MaxBackoff: 5 * time.Minute,
	}
	if d := cmp.Diff(want, c.opts); d != "" {
		t.Errorf("of New (-want +got):\n%s", d)
	}
	m := managing1(ManageOptions[*thing]{}).engine.(*controller[*thing])
	if o := m.external.opts; m.opts.Poll != 10*time.Minute || o.CallTimeout != 30*time.Second || o.Settle != time.Minute || o.KeyLifetime != 0 {
		t.Errorf("of Manage: Poll %v, CallTimeout %v, Settle %v, KeyLifetime %v", m.opts.Poll, o.CallTimeout, o.Settle, o.KeyLifetime)
	}
	for call, want := range map[time.Duration]time.Duration{0: 2 * time.Minute, time.Second: 2 * time.Minute, time.Hour: 4 * time.Hour} {
		if m := managing1(ManageOptions[*thing]{CallTimeout: call}).engine.(*controller[*thing]); m.opts.Timeout != want {
			t.Errorf("of Manage with CallTimeout %v: Timeout %v, want %v", call, m.opts.Timeout, want)
		}
	}
	o := RunOptions{Lease: &Lease{Namespace: "ns", Name: "n"}}.withDefaults()
	if o.StopTimeout != 20*time.Second || lastWrites != 5*time.Second || o.SingleProcess {
		t.Errorf("of Run: StopTimeout %v, last writes %v, SingleProcess %v", o.StopTimeout, lastWrites, o.SingleProcess)
	}
	if l := o.Lease; l.Duration != 15*time.Second || l.RenewDeadline != 10*time.Second || l.RetryPeriod != 750*time.Millisecond || l.Identity == "" {
		t.Errorf("of Lease: %+v", l)
	}
}

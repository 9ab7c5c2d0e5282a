package faketest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether/booking"
	"github.com/tetherkube/tether/fake"
	"github.com/tetherkube/tether/fake/faketest"
)

// book books once with each reference, in their order.
func book(ctx context.Context, client *http.Client, references ...string) error {
	api, err := booking.NewClient(booking.Options{BaseURL: "http://booking.example", Token: booking.StaticToken("t"), Transport: client.Transport})
	if err != nil {
		return err
	}
	var failed []error
	for _, ref := range references {
		_, err := api.Create(ctx, ref, booking.Request{
			ClientReference: ref, From: "ICN", To: "JFK", DepartureDate: "2027-05-01",
			Passengers: []booking.Passenger{{GivenName: "Test", FamilyName: "Passenger"}},
		})
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// booksAndWaits books a and b, and goes on until it is stopped.
func booksAndWaits(ctx context.Context, _ *rest.Config, client *http.Client) error {
	err := book(context.WithoutCancel(ctx), client, "a", "b")
	<-ctx.Done()
	return err
}

func TestTimePassesAndTakesNone(t *testing.T) {
	t.Parallel()
	faketest.Run(t, faketest.Options{}, func(_ context.Context, t *testing.T, w *faketest.World) {
		var woke []time.Duration
		begin := time.Now()
		p := w.Start(func(ctx context.Context, _ *rest.Config, _ *http.Client) error {
			for tick := time.Tick(24 * time.Hour); ctx.Err() == nil; {
				select {
				case <-tick:
					woke = append(woke, time.Since(begin))
				case <-ctx.Done():
				}
			}
			return ctx.Err()
		})
		time.Sleep(60 * time.Hour)
		p.Stop()
		if diff := cmp.Diff([]time.Duration{24 * time.Hour, 48 * time.Hour}, woke); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestAProgramDiesAtTheRequestThatItIsToDieAt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		how      faketest.Death
		nth      int
		requests int
		arrived  string // at the booking server, of a and b
	}{
		{"stopped, the request goes on", faketest.StopBefore, 1, 2, "a b"},
		{"crashed before it is sent", faketest.CrashBefore, 2, 2, "a"},
		{"crashed after it was answered", faketest.CrashAfter, 2, 2, "a b"},
		{"what comes after a crash does not arrive", faketest.CrashAfter, 1, 2, "a"},
		{"not that many requests", faketest.CrashBefore, 3, 2, "a b"},
	} {
		faketest.Run(t, faketest.Options{}, func(_ context.Context, t *testing.T, w *faketest.World) {
			p := w.StartUntil(c.nth, c.how, booksAndWaits)
			time.Sleep(time.Second)
			dead := false
			select {
			case <-p.Dead():
				dead = true
			default:
			}
			if want := c.nth <= c.requests; dead != want || p.Requests() != c.requests {
				t.Errorf("%s: dead %v after %d requests, want %v after %d", c.name, dead, p.Requests(), want, c.requests)
			}
			var arrived []string
			for _, e := range w.Booking.Journal() {
				arrived = append(arrived, e.Reference)
			}
			if got := strings.Join(arrived, " "); got != c.arrived {
				t.Errorf("%s: %q arrived, want %q", c.name, got, c.arrived)
			}
		})
	}
}

func TestACrashCutsAProgramOffWhileAnotherGoesOn(t *testing.T) {
	t.Parallel()
	faketest.Run(t, faketest.Options{}, func(ctx context.Context, t *testing.T, w *faketest.World) {
		watches := func(ctx context.Context, cluster *rest.Config, _ *http.Client) error {
			kube, err := kubernetes.NewForConfig(cluster)
			if err != nil {
				return err
			}
			body, err := kube.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces").Param("watch", "1").Stream(context.WithoutCancel(ctx))
			if err != nil {
				return err
			}
			defer body.Close()
			for buf := make([]byte, 1<<10); err == nil; {
				_, err = body.Read(buf)
			}
			return fmt.Errorf("the watch ended: %w", err)
		}
		one, other := w.Start(watches), w.Start(watches)
		time.Sleep(time.Hour / 4)
		one.Crash()
		if err := one.Wait(ctx); err == nil {
			t.Error("the watch outlived the crash")
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := other.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("another program's watch ended: %v", err)
		}
		other.Crash()
	})
}

// apimachinery slows errors down by one clock for all bubbles.
func TestAnErrorInOneBubbleDoesNotHoldUpAnother(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{7 * 24 * time.Hour, 0} {
		faketest.Run(t, faketest.Options{}, func(ctx context.Context, t *testing.T, _ *faketest.World) {
			time.Sleep(after)
			begin := time.Now()
			utilruntime.HandleErrorWithContext(ctx, errors.New("expected"), "An error of this test")
			if took := time.Since(begin); took > time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestTheSeedFixesWhichRequestsAFaultMeets(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) (journal string) {
		faketest.Run(t, faketest.Options{Seed: seed}, func(ctx context.Context, t *testing.T, w *faketest.World) {
			w.Booking.Inject(fake.BookingFault{Kind: fake.BookingInternal, Probability: 0.5})
			p := w.Start(func(ctx context.Context, _ *rest.Config, client *http.Client) error {
				return book(ctx, client, strings.Fields("a b c d e f g h i j k l m n o p")...)
			})
			if err := p.Wait(ctx); err == nil {
				t.Error("no fault was met")
			}
			journal = w.Booking.Transcript()
		})
		return journal
	}
	one := run(1)
	if diff := cmp.Diff(one, run(1)); diff != "" {
		t.Errorf("the same seed (-first +second):\n%s", diff)
	}
	if one == run(2) {
		t.Errorf("another seed gives the same:\n%s", one)
	}
}

// failing are tests that must fail, and what they must say. They run in a process
// of their own.
var failing = map[string]struct {
	run  func(ctx context.Context, t *testing.T, w *faketest.World)
	o    faketest.Options
	says []string
}{
	"an error": {
		run: func(_ context.Context, _ *testing.T, w *faketest.World) {
			w.Start(func(ctx context.Context, _ *rest.Config, client *http.Client) error {
				return errors.Join(book(ctx, client, "my-reference"), errors.New("out of paper"))
			})
			time.Sleep(time.Second)
		},
		o:    faketest.Options{Seed: 77},
		says: []string{"an error that nobody expected: out of paper", "seed 77", "ref=my-reference"},
	},
	"no end": {
		run: func(_ context.Context, _ *testing.T, w *faketest.World) {
			w.Start(func(ctx context.Context, _ *rest.Config, _ *http.Client) error {
				<-ctx.Done()
				time.Sleep(time.Hour)
				return nil
			}).Stop()
		},
		says: []string{"still runs 1m0s after it was told to stop"},
	},
	"a panic": {
		run: func(_ context.Context, _ *testing.T, w *faketest.World) {
			w.Start(func(context.Context, *rest.Config, *http.Client) error { panic("no map") })
		},
		says: []string{"it panicked: no map", "faketest_test.go"},
	},
	"a Goexit": {
		run: func(_ context.Context, _ *testing.T, w *faketest.World) {
			w.Start(func(context.Context, *rest.Config, *http.Client) error { runtime.Goexit(); return nil })
		},
		says: []string{"runtime.Goexit"},
	},
	"a wait in vain": {
		run: func(ctx context.Context, t *testing.T, w *faketest.World) {
			w.Start(booksAndWaits)
			if _, err := w.Booking.Await(ctx, func(fake.BookingEntry) bool { return false }); err != nil {
				t.Fatal(err)
			}
		},
		o:    faketest.Options{Limit: 90 * time.Minute},
		says: []string{"more than 1h30m0s of virtual time", "ref=b", "the API server's journal"},
	},
	"a panic of the test": {
		run: func(_ context.Context, _ *testing.T, w *faketest.World) {
			w.Start(booksAndWaits)
			panic("no test")
		},
		says: []string{"no test"},
	},
	"options": {
		o:    faketest.Options{Limit: -1, API: fake.APIOptions{HistoryLimit: -1}, Booking: fake.BookingOptions{Currency: "euro"}},
		says: []string{"Options.Limit", "Options.API", "Options.Booking"},
	},
	"a death": {
		run: func(_ context.Context, _ *testing.T, w *faketest.World) {
			w.StartUntil(0, faketest.CrashAfter, booksAndWaits)
		},
		says: []string{"want a request from 1 on"},
	},
}

const failingTest = "FAKETEST_FAILING"

func TestWhatMustFailFailsAndSaysWhy(t *testing.T) {
	t.Parallel()
	if name := os.Getenv(failingTest); name != "" {
		faketest.Run(t, failing[name].o, failing[name].run)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range failing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestWhatMustFailFailsAndSaysWhy$", "-test.timeout=1m")
			cmd.Env = append(os.Environ(), failingTest+"="+name)
			out, err := cmd.CombinedOutput()
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
				t.Fatalf("it ended with %v", err)
			}
			for _, want := range c.says {
				if !strings.Contains(string(out), want) {
					t.Errorf("it does not say %q:\n%s", want, out)
				}
			}
		})
	}
}

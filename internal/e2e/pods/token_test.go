package pods

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAPodsTokenIsRefusedWhenThePodIsGone(t *testing.T) {
	operator(t)
	f := newFlights(t)
	leads, _ := leader(t)
	token := tokenOf(t, leads)
	said := review(t, token)
	if !said.Authenticated || said.User.Username != "system:serviceaccount:ticket-controller:ticket-controller" ||
		said.User.Extra["authentication.kubernetes.io/pod-uid"][0] != string(leads.UID) {
		t.Fatalf("while its pod runs, the token is %+v", said)
	}
	f.book(t, "one")
	f.exactlyOnce(t, 1)
	must(t, "delete", "pod", "-n", namespace, leads.Name)
	gone := time.Now()
	refused(t, token)
	t.Logf("it was refused %v after its pod was gone", time.Since(gone).Round(100*time.Millisecond))
	f.book(t, "two")
	f.exactlyOnce(t, 2)
	readyPods(t)
}

func TestTheKubeletRenewsATokenAndThePodGoesOn(t *testing.T) {
	if !*slow {
		t.Log("of this test, what takes a quarter of an hour is done with -args -slow alone")
	}
	operator(t)
	f := newFlights(t)
	leads, _ := leader(t)
	old := tokenOf(t, leads)
	life := expiry(t, old)
	if left := time.Until(life); left > 11*time.Minute {
		t.Errorf("the token is good for another %v, want the ten minutes that install.yaml has", left)
	}
	f.book(t, "one")
	f.exactlyOnce(t, 1)
	if !*slow {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	begin := time.Now()
	becomes(ctx, t, func() bool { return tokenOf(t, leads) != old })
	t.Logf("renewed after %v, %v before the end of the old one", time.Since(begin).Round(time.Second), time.Until(life).Round(time.Second))
	becomes(ctx, t, func() bool { return !review(t, old).Authenticated })
	t.Logf("the old one was refused %v after its end", time.Since(life).Round(time.Second))
	f.book(t, "two")
	f.exactlyOnce(t, 2)
	if now := pod(t, leads.Name); now.UID != leads.UID || now.Status.ContainerStatuses[0].RestartCount != leads.Status.ContainerStatuses[0].RestartCount {
		t.Error("the pod was restarted meanwhile")
	}
	if calls := site.callsFrom(leads.Status.PodIP, life); len(calls) == 0 {
		t.Error("it was another pod that booked")
	}
}

// becomes asks every five seconds.
func becomes(ctx context.Context, t *testing.T, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
}

// tokenOf is the token that a pod's container reads at the moment.
func tokenOf(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	token, err := cluster.ReadProjected(t.Context(), pod, "api-access", "token")
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func review(t *testing.T, token string) authenticationv1.TokenReviewStatus {
	t.Helper()
	asked := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	answer, err := core.AuthenticationV1().TokenReviews().Create(t.Context(), asked, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status
}

// refused waits until the API server, which remembers for some seconds whom it has
// seen, refuses a token.
func refused(t *testing.T, token string) {
	t.Helper()
	eventually(t, "the token to be refused", func(context.Context) (bool, error) { return !review(t, token).Authenticated, nil })
}

// expiry is when a token ends.
func expiry(t *testing.T, token string) time.Time {
	t.Helper()
	var claims struct {
		Expiry int64 `json:"exp"`
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err == nil {
		err = json.Unmarshal(raw, &claims)
	}
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(claims.Expiry, 0)
}

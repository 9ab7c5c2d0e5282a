package tether_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tetherkube/tether"
)

var configMaps = tether.Resource[*corev1.ConfigMap]{GroupVersion: corev1.SchemeGroupVersion, Kind: "ConfigMap", Plural: "configmaps"}

var secrets = tether.Resource[*corev1.Secret]{GroupVersion: corev1.SchemeGroupVersion, Kind: "Secret", Plural: "secrets"}

// copier keeps a Secret beside each ConfigMap.
type copier struct {
	secrets *tether.Client[*corev1.Secret]
}

func (c *copier) Reconcile(ctx context.Context, cm *corev1.ConfigMap) (tether.Result, error) {
	_, err := c.secrets.Apply(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cm.Namespace, Name: cm.Name,
			OwnerReferences: []metav1.OwnerReference{configMaps.OwnerReference(cm)},
		},
		StringData: cm.Data,
	})
	return tether.Done, err
}

// A controller for a built-in type: it makes an object for each of them, owned by
// it, and puts it right when someone changes it.
func ExampleNew() {
	in := tether.NewInformer(configMaps, tether.InformerOptions{LabelSelector: "copy=true"})
	made := tether.NewInformer(secrets, tether.InformerOptions{})
	c := tether.New(in, &copier{tether.NewClient(made, tether.ClientOptions{})}, tether.Options{
		Name:    "copier",
		Watches: []tether.Watch{tether.Owned(made)},
	})
	ctx, stop := context.WithCancel(context.Background())
	stop() // in a program, at a signal
	fmt.Println(tether.Run(ctx, &rest.Config{Host: "https://127.0.0.1:1"}, tether.RunOptions{}, c))
	// Output: <nil>
}

// Run tells all mistakes at once, each with the controller, the field and the
// remedy.
func ExampleRun_mistakes() {
	in := tether.NewInformer(configMaps, tether.InformerOptions{LabelSelector: "copy in"})
	c := tether.New(in, &copier{}, tether.Options{Name: "copier", Workers: -1})
	fmt.Println(tether.Run(context.Background(), &rest.Config{}, tether.RunOptions{}, c))
	// Output:
	// controller "copier": Options.Workers: -1 is negative; give a positive number, or 0 for 4
	// controller "copier": informer of configmaps: InformerOptions.LabelSelector: unable to parse requirement: found '' expected: '('; give one as kubectl -l takes it
}

// ConfigMaps name the Secrets that they want; an index finds them again when a
// Secret changes.
func ExampleWatches() {
	in := tether.NewInformer(configMaps, tether.InformerOptions{})
	wanting := tether.NewIndex(in, func(cm *corev1.ConfigMap) []string {
		return []string{cm.Namespace + "/" + cm.Data["secret"]}
	})
	watch := tether.Watches(tether.NewInformer(secrets, tether.InformerOptions{}), func(s *corev1.Secret) iter.Seq[tether.Key] {
		return func(yield func(tether.Key) bool) {
			for cm := range wanting.Lookup(s.Namespace + "/" + s.Name) {
				if !yield(tether.Key{Namespace: cm.Namespace, Name: cm.Name}) {
					return
				}
			}
		}
	})
	c := tether.New(in, &copier{}, tether.Options{Watches: []tether.Watch{watch}})
	ctx, stop := context.WithCancel(context.Background())
	stop()
	fmt.Println(tether.Run(ctx, &rest.Config{Host: "https://127.0.0.1:1"}, tether.RunOptions{}, c))
	// Output: <nil>
}

// FromHTTP knows the usual; an author adds a line for each case of his own.
func ExampleFromHTTP() {
	said := func(resp *http.Response, err error) error {
		if err == nil && resp.StatusCode == http.StatusPaymentRequired {
			return tether.Terminal(tether.Reason("NoCredit", errors.New("the account has no credit left")))
		}
		return tether.FromHTTP(resp, err)
	}
	for _, code := range []int{http.StatusCreated, http.StatusPaymentRequired, http.StatusTooManyRequests} {
		fmt.Println(said(&http.Response{StatusCode: code}, nil))
	}
	// Output:
	// <nil>
	// the account has no credit left
	// HTTP 429 Too Many Requests
}

// Two controllers call one endpoint, which bears twenty calls a second from both
// together. A Reconciler that makes several in a pass makes each of them with Do.
func ExampleNewBudget() {
	budget := tether.NewBudget(tether.BudgetOptions{Name: "vault", Rate: 20})
	in := tether.NewInformer(configMaps, tether.InformerOptions{})
	one := tether.New(in, &copier{}, tether.Options{Name: "one", Budget: budget})
	other := tether.New(in, &copier{}, tether.Options{Name: "other", Budget: budget})

	ctx, stop := context.WithCancel(context.Background())
	err := budget.Do(ctx, func(context.Context) error { // in a pass, or anywhere
		return tether.FromHTTP(&http.Response{StatusCode: http.StatusOK}, nil)
	})
	stop()
	fmt.Println(err, tether.Run(ctx, &rest.Config{Host: "https://127.0.0.1:1"}, tether.RunOptions{}, one, other))
	// Output: <nil> <nil>
}

func ExampleHealth() {
	health := &tether.Health{} // give it to RunOptions, and serve it
	server := httptest.NewServer(health)
	defer server.Close()
	for _, path := range []string{"/livez", "/readyz?verbose"} {
		resp, err := http.Get(server.URL + path) //nolint:noctx // an example
		if err != nil {
			fmt.Println(err)
			return
		}
		var body strings.Builder
		_ = resp.Write(&body)
		_ = resp.Body.Close()
		_, text, _ := strings.Cut(body.String(), "\r\n\r\n")
		fmt.Println(resp.StatusCode, strings.TrimSpace(text))
	}
	// Output:
	// 200 ok
	// 503 [-]run failed: Run has not begun, or has ended
	// readyz check failed
}

package tether_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tetherkube/tether"
)

func TestReferencesTellWhatStandsForAnObjectInACluster(t *testing.T) {
	t.Parallel()
	in := tether.NewInformer(tether.Resource[*corev1.ConfigMap]{GroupVersion: corev1.SchemeGroupVersion, Kind: "ConfigMap", Plural: "configmaps"}, tether.InformerOptions{})
	c := tether.New(in, nil, tether.Options{Domain: "example.com", Name: "records"})
	here, there := c.References("c1"), c.References("c2")
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n", UID: "u"}}
	first, second := here.Of(obj, 1), here.Of(obj, 2)
	if first == second || first == there.Of(obj, 1) {
		t.Errorf("the same for another thing, or cluster: %s, %s, %s", first, second, there.Of(obj, 1))
	}
	if !here.InCluster(first) || here.InCluster(there.Of(obj, 1)) || here.InCluster("") {
		t.Error("what is of this cluster is not told from what is not")
	}
	if got, err := here.Claim(obj); err != nil || got.Cluster != "" || got.UID != "" || got.References != nil {
		t.Errorf("without a claim: %+v, %v", got, err)
	}
	set := func(claim string) { obj.Annotations = map[string]string{"example.com/records.claim": claim} }
	set(`{"v":1,"controller":"example.com/records","cluster":"c2","namespace":"ns","name":"n","uid":"u","owner":"u","incarnation":1,"attempt":1,"next":2,"guarantee":"UniqueReference","window":"1m0s"}`)
	var latestFirst []string
	for n := 4; n > 0; n-- {
		latestFirst = append(latestFirst, there.Of(obj, n))
	}
	got, err := here.Claim(obj)
	if d := cmp.Diff(tether.Claim{Cluster: "c2", UID: types.UID("u"), References: latestFirst}, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	set("{")
	if _, err := here.Claim(obj); err == nil || !strings.Contains(err.Error(), "example.com/records.claim") {
		t.Errorf("a claim that cannot be read: %v", err)
	}
}

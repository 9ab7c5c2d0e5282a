package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// These are facts about the API server that the library is built on, and that
// surprise people. Where a later release changes one, this tells.

const merge, jsonPatch = types.MergePatchType, types.JSONPatchType

// patchTicket patches a Ticket or one of its subresources.
func (w *world) patchTicket(t *testing.T, name string, kind types.PatchType, patch string, subresource ...string) (*unstructured.Unstructured, error) {
	t.Helper()
	return w.dynamic.Resource(tickets).Namespace(w.namespace).
		Patch(t.Context(), name, kind, []byte(patch), metav1.PatchOptions{}, subresource...)
}

// mustPatch applies a merge patch that is to be accepted.
func (w *world) mustPatch(t *testing.T, name, patch string, subresource ...string) *unstructured.Unstructured {
	t.Helper()
	obj, err := w.patchTicket(t, name, merge, patch, subresource...)
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

// code is the HTTP status that an error stands for, 0 for none of the server's.
func code(err error) int32 {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code
	}
	return 0
}

func TestAStatusPatchIgnoresAWrongUID(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(t, "uid", `{}`)
	obj := w.mustPatch(t, "uid", `{"metadata":{"uid":"another"},"status":{"state":"pending"}}`, "status")
	if obj.GetUID() == "another" {
		t.Error("the UID has changed")
	}
	if state, _, _ := unstructured.NestedString(obj.Object, "status", "state"); state != "pending" {
		t.Errorf("state %q", state)
	}
}

func TestAPatchOfTheObjectRefusesAWrongUIDAsInvalid(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(t, "uid", `{}`)
	_, err := w.patchTicket(t, "uid", merge, `{"metadata":{"uid":"another","labels":{"a":"b"}}}`)
	if code(err) != http.StatusUnprocessableEntity || !strings.Contains(err.Error(), "field is immutable") {
		t.Errorf("%d: %v", code(err), err)
	}
}

func TestAJSONPatchTestThatFailsIsInvalidAndNoConflict(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(t, "guard", `{}`)
	_, err := w.patchTicket(t, "guard", jsonPatch,
		`[{"op":"test","path":"/metadata/uid","value":"another"},{"op":"add","path":"/status","value":{"state":"pending"}}]`, "status")
	if code(err) != http.StatusUnprocessableEntity || apierrors.IsConflict(err) {
		t.Errorf("%d: %v", code(err), err)
	}
}

func TestAWrongResourceVersionIsAConflictOnBoth(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(t, "version", `{}`)
	w.mustPatch(t, "version", `{"metadata":{"labels":{"a":"b"}}}`)
	for _, sub := range [][]string{nil, {"status"}} {
		_, err := w.patchTicket(t, "version", merge, `{"metadata":{"resourceVersion":"1"},"status":{"state":"pending"}}`, sub...)
		if !apierrors.IsConflict(err) {
			t.Errorf("%v: %v", sub, err)
		}
	}
}

func TestAPatchThatChangesNothingKeepsTheResourceVersion(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(t, "same", `{}`)
	first := w.mustPatch(t, "same", `{"status":{"state":"pending"}}`, "status")
	again := w.mustPatch(t, "same", fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"status":{"state":"pending"}}`, first.GetResourceVersion()), "status")
	if first.GetResourceVersion() != again.GetResourceVersion() {
		t.Errorf("%s became %s", first.GetResourceVersion(), again.GetResourceVersion())
	}
}

func TestAStatusPatchDropsMetadataWithoutAWord(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(t, "quiet", `{}`)
	obj := w.mustPatch(t, "quiet", `{"metadata":{"annotations":{"flights.com/kept":"no"},"finalizers":["flights.com/kept"]},"status":{"state":"pending"}}`, "status")
	if len(obj.GetFinalizers()) != 0 || obj.GetAnnotations()["flights.com/kept"] != "" {
		t.Errorf("finalizers %v, annotations %v", obj.GetFinalizers(), obj.GetAnnotations())
	}
}

func TestAPatchOfTheObjectDropsStatusWithoutAWord(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(t, "main", `{}`)
	obj := w.mustPatch(t, "main", `{"metadata":{"labels":{"a":"b"}},"status":{"state":"pending"}}`)
	if _, found, _ := unstructured.NestedString(obj.Object, "status", "state"); found || obj.GetGeneration() != 1 {
		t.Errorf("status %v, generation %d", obj.Object["status"], obj.GetGeneration())
	}
}

func TestAFinalizerCannotBeAddedToAnObjectThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(t, "going", `{"metadata":{"finalizers":["flights.com/one"]}}`)
	w.run(t, "delete", "ticket", "going", "--wait=false")
	_, err := w.patchTicket(t, "going", merge, `{"metadata":{"finalizers":["flights.com/one","flights.com/two"]}}`)
	if code(err) != http.StatusUnprocessableEntity {
		t.Errorf("%d: %v", code(err), err)
	}
	// An annotation can.
	w.mustPatch(t, "going", `{"metadata":{"annotations":{"flights.com/kept":"yes"}}}`)
	// The object goes with its last finalizer, and the answer still has it.
	last := w.mustPatch(t, "going", `{"metadata":{"finalizers":null}}`)
	if last.GetName() != "going" {
		t.Errorf("the answer is %v", last.Object)
	}
	_, err = w.dynamic.Resource(tickets).Namespace(w.namespace).Get(t.Context(), "going", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

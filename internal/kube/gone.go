package kube

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsGone tells whether an error says that the object is not there. A server that does
// not serve the resource answers 404 as well, such as a replica that has not heard of
// the definition yet; but not in the words of the API, and that tells nothing of the
// object.
func IsGone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

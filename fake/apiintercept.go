package fake

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tetherkube/tether/internal/apiserver/endpoint"
	"github.com/tetherkube/tether/internal/apiserver/storage"
)

// intercept stands around every request: it keeps the journal and lets the faults
// happen.
func (s *APIServer) intercept(x *endpoint.Exchange, next func() *endpoint.Answer) *endpoint.Answer {
	named(x)
	entry := s.journal.add(entryFor(x))
	x.Request = x.Request.WithContext(withEntry(x.Request.Context(), entry))
	met := s.faults.meet(subjectOf(x), time.Now())
	if len(met.kinds) > 0 {
		s.journal.update(entry, func(e *APIEntry) { e.Faults = append(e.Faults, met.kinds...) })
	}
	if met.delay > 0 && !s.serving.Wait(x.Request.Context(), met.delay) {
		s.journal.update(entry, func(e *APIEntry) { e.answered(x, nil) })
		return nil
	}
	x.StaleAt = met.staleAt
	var a *endpoint.Answer
	if met.instead != nil {
		a = instead(x, met.instead)
	} else {
		a = s.spoil(x, next(), met.answer)
	}
	s.journal.update(entry, func(e *APIEntry) { e.answered(x, a) })
	if a != nil && a.Streams() {
		a.OnEnd(func() { s.journal.update(entry, func(e *APIEntry) { e.Done = true }) })
	}
	return a
}

// named takes the name of an object to be created from the body.
func named(x *endpoint.Exchange) {
	if x.Name != "" || x.Verb != "create" {
		return
	}
	var body struct {
		Metadata struct{ Name string }
	}
	if json.Unmarshal(x.Body, &body) == nil {
		x.Target.Named = body.Metadata.Name
	}
}

func subjectOf(x *endpoint.Exchange) apiSubject {
	sub := apiSubject{
		verb: x.Verb, user: x.User.Name, group: x.Group, resource: x.Resource, namespace: x.Namespace, name: x.Name,
	}
	if sub.name == "" {
		sub.name = x.Named
	}
	if x.Subresource != "" {
		sub.resource += "/" + x.Subresource
	}
	return sub
}

// instead is the answer to a request that is not carried out; nil cuts it.
func instead(x *endpoint.Exchange, f *APIFault) *endpoint.Answer {
	gr := schema.GroupResource{Group: x.Group, Resource: x.Resource}
	seconds := wholeSeconds(f.RetryAfter)
	var err *apierrors.StatusError
	switch f.Kind {
	case APITooManyRequests:
		err = apierrors.NewTooManyRequests("The apiserver is overloaded; please try again later.", max(seconds, 1))
	case APIInternal:
		err = apierrors.NewInternalError(errors.New("a fault was injected"))
	case APIUnavailable:
		err = apierrors.NewServiceUnavailable("the server is currently unable to handle the request")
		err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(min(seconds, 1<<30))}
	case APITimeout:
		err = apierrors.NewTimeoutError("request did not complete within the allotted timeout", seconds)
	case APIConflict:
		err = apierrors.NewConflict(gr, x.Name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	case APIForbidden:
		err = endpoint.Forbidden(x.User, x.Target)
	case APIUnauthorized:
		err = apierrors.NewUnauthorized("Unauthorized")
	case APINotServed:
		return endpoint.Text(http.StatusNotFound, "404 page not found\n")
	case APIGone:
		err = apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
			"You can start a new list without the continue parameter.")
	default:
		return nil
	}
	return endpoint.Failure(err)
}

// spoil is what becomes of an answer on its way back; nil cuts it.
func (s *APIServer) spoil(x *endpoint.Exchange, a *endpoint.Answer, f *APIFault) *endpoint.Answer {
	if f == nil || a == nil || a.Streams() && f.Kind != APICutAfter {
		return a
	}
	switch f.Kind {
	case APIInternalAfter:
		return endpoint.Failure(apierrors.NewInternalError(errors.New("a fault was injected after the commit")))
	case APITimeoutAfter:
		return endpoint.Failure(apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0))
	case APILateAnswer:
		if s.serving.Wait(x.Request.Context(), f.Delay) {
			return a
		}
	case APITruncated:
		a.Truncated = true
		return a
	}
	return nil
}

// tap says what becomes of an event of a watch; nil is a watch on which nothing
// happens.
func (s *APIServer) tap(x *endpoint.Exchange, e *storage.Event) endpoint.Fate {
	sub := subjectOf(x)
	sub.event, sub.quiet = true, e == nil
	entry := entryOf(x.Request.Context())
	if e != nil {
		sub.namespace, sub.name = e.Object.Namespace, e.Object.Name
	}
	met := s.faults.meet(sub, time.Now())
	if entry != nil && (e != nil || len(met.kinds) > 0) {
		s.journal.update(entry, func(j *APIEntry) {
			if e != nil {
				j.Events++
			}
			for _, k := range met.kinds {
				if !slices.Contains(j.Faults, k) {
					j.Faults = append(j.Faults, k)
				}
			}
		})
	}
	return fateOf(met.watch)
}

func fateOf(faults []APIFault) endpoint.Fate {
	var f endpoint.Fate
	for _, fault := range faults {
		switch fault.Kind {
		case APIWatchCut:
			f.Cut = true
		case APIWatchStall:
			f.Stall = true
		case APIWatchExpired:
			f.Expire = true
		case APIWatchDelay:
			f.Delay += fault.Delay
		case APIWatchDuplicate:
			f.Again++
		case APIWatchDrop:
			f.Drop = true
		}
	}
	return f
}

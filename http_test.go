package tether

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestAnHTTPAnswerSaysWhatIsKnownOfTheEffect(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]outcome{
		301: {noEffect: true}, 400: {terminal: true, noEffect: true}, 401: {noEffect: true, reason: "Unauthorized"},
		403: {noEffect: true, reason: "Unauthorized"}, 404: {noEffect: true}, 408: {}, 409: {noEffect: true}, 412: {noEffect: true},
		422: {terminal: true, noEffect: true}, 425: {noEffect: true}, 429: {noEffect: true, reason: "RateLimited"},
		500: {}, 501: {terminal: true, noEffect: true}, 502: {}, 503: {reason: "Unavailable"}, 504: {}, 599: {}, 700: {},
	} {
		got := outcomeOf(FromHTTP(&http.Response{StatusCode: code, Header: http.Header{}}, nil))
		if got.terminal != want.terminal || got.noEffect != want.noEffect || got.later || got.reason != want.reason {
			t.Errorf("%d: %+v", code, got)
		}
	}
	for _, code := range []int{200, 201, 202, 204} {
		if err := FromHTTP(&http.Response{StatusCode: code}, nil); err != nil {
			t.Errorf("%d: %v", code, err)
		}
	}
}

func TestRetryAfterIsReadAsSecondsOrAsADate(t *testing.T) {
	t.Parallel()
	date := "Wed, 02 Dec 2026 12:00:00 GMT"
	for value, want := range map[string]time.Duration{
		"": -1, "soon": -1, "-5": -1, "0": 0, "120": 2 * time.Minute, "99999999999999999999": longestRetryAfter,
		"Wed, 02 Dec 2026 12:01:00 GMT": time.Minute, "Wed, 02 Dec 2026 11:00:00 GMT": 0, "Fri, 01 Jan 2100 00:00:00 GMT": longestRetryAfter,
	} {
		resp := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Date": {date}}}
		if value != "" {
			resp.Header.Set("Retry-After", value)
		}
		got := outcomeOf(FromHTTP(resp, nil))
		if got.later != (want >= 0) || want >= 0 && got.after != want {
			t.Errorf("%q: %v %v, want %v", value, got.later, got.after, want)
		}
	}
}

func TestWhatWasNotSentHadNoEffectAndWhatWasLostIsUnknown(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(hang)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	post := func(client *http.Client, url string, d time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		return FromHTTP(resp, err)
	}
	for name, c := range map[string]struct {
		err      error
		noEffect bool
	}{
		"refused":     {post(http.DefaultClient, gone.URL, time.Minute), true},
		"no address":  {post(http.DefaultClient, "http://nowhere.invalid", time.Minute), true},
		"certificate": {post(http.DefaultClient, server.URL, time.Minute), true},
		"time-out":    {post(server.Client(), server.URL, 200*time.Millisecond), false},
		"anything":    {FromHTTP(nil, errors.New("something")), false},
	} {
		got := outcomeOf(c.err)
		if c.err == nil || got.noEffect != c.noEffect || c.noEffect && got.reason != "Unreachable" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestARetryAfterCountsWhereItHasAMeaning(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]bool{301: true, 400: false, 404: false, 429: true, 500: false, 502: false, 503: true} {
		resp := &http.Response{StatusCode: code, Header: http.Header{"Retry-After": {"3600"}}}
		if got := outcomeOf(FromHTTP(resp, nil)).later; got != want {
			t.Errorf("%d: it is waited for: %v, want %v", code, got, want)
		}
	}
}

package kube

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// answering is a transport whose answers bear the server's time, as HTTP has it.
type answering struct{ ahead time.Duration }

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	date := time.Now().Add(a.ahead).UTC().Format(http.TimeFormat)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Date": {date}}, Body: http.NoBody}, nil
}

func TestWhatTheServerJustMadeIsNewInWhicheverPartOfASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const step = 100 * time.Millisecond
		// The last answer came in one part of a second, the object in another.
		for answered := time.Duration(0); answered < time.Second; answered += step {
			for later := time.Duration(0); later < 2*time.Second; later += step {
				conn := &Conn{}
				server := answering{ahead: time.Hour + answered}
				res, err := (&meter{next: server, conn: conn}).RoundTrip(&http.Request{})
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				time.Sleep(later)
				created := time.Now().Add(server.ahead).Truncate(time.Second)
				if age := conn.Age(created); age < 0 || age > 2*time.Second {
					t.Errorf("answered at .%d, made %v later: it is %v old", answered.Milliseconds(), later, age)
				}
			}
		}
	})
}

func TestACreationTimeOfTheFutureIsANegativeAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn := &Conn{}
		if age := conn.Age(time.Now().Add(2 * time.Second)); age != -2*time.Second {
			t.Errorf("it is %v old", age)
		}
		if age := conn.Age(time.Now().Add(-time.Minute)); age != time.Minute {
			t.Errorf("it is %v old", age)
		}
	})
}

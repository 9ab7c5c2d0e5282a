package kube

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
)

func TestCloseEndsAConnectionThatIsInUseAndMakesNoOther(t *testing.T) {
	t.Parallel()
	answered := make(chan struct{})
	conn := server(t, nil, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		close(answered)
		<-r.Context().Done() // until the client has gone
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, conn.Config.Host, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := conn.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	<-answered
	conn.Close()
	conn.Close()
	if _, err := res.Body.Read(make([]byte, 1)); err == nil {
		t.Error("the answer goes on")
	}
	if res, err := conn.Client.Do(req); err == nil {
		res.Body.Close()
		t.Error("there is another answer")
	} else if !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if len(conn.dial.ends) > 0 {
		t.Errorf("%d connections are left", len(conn.dial.ends))
	}
}

func TestCloseEndsAnAttemptToConnect(t *testing.T) {
	t.Parallel()
	dialling := make(chan struct{})
	d := &dialer{dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		close(dialling)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	ended := make(chan error)
	go func() {
		_, err := d.DialContext(context.Background(), "tcp", "127.0.0.1:1")
		ended <- err
	}()
	<-dialling
	d.close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

func TestAConnectionThatWasClosedIsForgotten(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	defer there.Close()
	d := &dialer{dial: func(context.Context, string, string) (net.Conn, error) { return here, nil }}
	c, err := d.DialContext(t.Context(), "tcp", "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil || len(d.ends) > 0 {
		t.Errorf("%v, %d left", err, len(d.ends))
	}
}

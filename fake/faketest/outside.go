package faketest

import (
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tetherkube/tether/fake/internal/memory"
)

// outside serves a test's own handler over memory.
type outside struct {
	listener *memory.Listener
	server   *http.Server
	serving  sync.WaitGroup
	conns    sync.WaitGroup

	mu         sync.Mutex // guards transports
	transports []*http.Transport
}

func serveOutside(h http.Handler) *outside {
	o := &outside{listener: memory.NewListener()}
	o.server = &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		ConnState: func(_ net.Conn, state http.ConnState) { // closed when its handler has returned
			switch state {
			case http.StateNew:
				o.conns.Add(1)
			case http.StateClosed, http.StateHijacked:
				o.conns.Done()
			}
		},
	}
	o.serving.Go(func() { _ = o.server.Serve(o.listener) }) // ends by close alone
	return o
}

func (o *outside) transport() *http.Transport {
	t := &http.Transport{DialContext: o.listener.Dial}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.transports = append(o.transports, t)
	return t
}

func (o *outside) close() {
	_ = o.server.Close() // what it could say of its listener has no use
	o.serving.Wait()
	_ = o.server.Close() // one that was accepted while Close went through the others
	o.conns.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.transports {
		t.CloseIdleConnections()
	}
}

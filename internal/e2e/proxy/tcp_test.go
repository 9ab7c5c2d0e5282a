package proxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// echo is a server that sends every line back, and tells each that it got.
func echo(t *testing.T) (addr string, got <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	lines := make(chan string, 16)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for r := bufio.NewReader(c); ; {
					line, err := r.ReadString('\n')
					if err != nil {
						return
					}
					lines <- line
					if _, err := io.WriteString(c, line); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String(), lines
}

func setupTCP(t *testing.T) (p *TCP, got <-chan string) {
	t.Helper()
	addr, got := echo(t)
	p, err := ListenTCP(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, got
}

func dial(t *testing.T, p *TCP) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func say(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.WriteString(c, "hello\n"); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, c net.Conn) {
	t.Helper()
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || line != "hello\n" {
		t.Fatalf("heard %q, %v", line, err)
	}
}

func TestTCPPassesBothWays(t *testing.T) {
	t.Parallel()
	p, _ := setupTCP(t)
	c := dial(t, p)
	say(t, c)
	hear(t, c)
}

func TestCutClosesWhatIsOpenAndServesWhatIsNew(t *testing.T) {
	t.Parallel()
	p, _ := setupTCP(t)
	c := dial(t, p)
	say(t, c)
	hear(t, c)
	p.Cut()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open")
	}
	again := dial(t, p)
	say(t, again)
	hear(t, again)
}

func TestRefuseClosesNewConnectionsUntilServe(t *testing.T) {
	t.Parallel()
	p, _ := setupTCP(t)
	p.Refuse()
	if _, err := dial(t, p).Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open")
	}
	p.Serve()
	c := dial(t, p)
	say(t, c)
	hear(t, c)
}

func TestStallHoldsBytesBackWithoutAWord(t *testing.T) {
	t.Parallel()
	p, got := setupTCP(t)
	c := dial(t, p)
	say(t, c)
	hear(t, c)
	<-got
	p.Stall()
	say(t, c)
	// What is shown is that nothing happens, for which no event can be awaited.
	if err := c.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	select {
	case line := <-got:
		t.Errorf("the server got %q", line)
	default:
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	p.Serve()
	hear(t, c)
}

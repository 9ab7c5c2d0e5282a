package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestAnErrorThatAWatchTellsIsWrittenDown(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, part := range []string{`{"type":"ADDED","object":{"code":5}}` + "\n" + `{"type":"ERR`, `OR","object":{"kind":"Status","code":410}}` + "\n"} {
			_, _ = io.WriteString(w, part) // the test sees what comes of it
			_ = http.NewResponseController(w).Flush()
		}
	}))
	t.Cleanup(server.Close)
	p, err := ListenHTTP(HTTPOptions{Name: "api", Target: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL()+"/tickets?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	if got, want := p.Journal().String(), "   1 api GET /tickets?watch=true → 200, then 410\n"; got != want {
		t.Errorf("journal %q, want %q", got, want)
	}
}

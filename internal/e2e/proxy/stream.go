package proxy

import (
	"bytes"
	"encoding/json"
	"io"
)

// stream is a watch's body, in which an API server tells errors as events.
type stream struct {
	io.ReadCloser
	line []byte // the event that has not ended yet
	told func(status int)
	pass func() error // returns when events pass, or why they no longer may
}

// Read passes what comes, when it may pass, and looks at each line that has ended.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	// The server may notice the cut before the connection to it is closed, and end
	// its answer: what the client sees is a cut all the same.
	if cut := s.pass(); cut != nil {
		err = cut
	}
	for rest := p[:n]; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		s.line, rest = append(s.line, part...), after
		if ended {
			s.event()
			s.line = s.line[:0]
		}
	}
	return n, err
}

func (s *stream) event() {
	var e struct {
		Type   string `json:"type"`
		Object struct {
			Code int `json:"code"`
		} `json:"object"`
	}
	if json.Unmarshal(s.line, &e) == nil && e.Type == "ERROR" {
		s.told(e.Object.Code)
	}
}

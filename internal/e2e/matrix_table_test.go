package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tetherkube/tether/internal/e2e/proxy"
)

// matrix is what came of each row.
type matrix struct {
	began time.Time

	// mu guards rows.
	mu   sync.Mutex
	rows []row
}

type row struct {
	story, happening string
	n                int
	call             string
	verdict
	stuck, failed bool
}

// nameOf is what a request does, without names that differ from run to run.
func nameOf(e proxy.Exchange) string {
	server, _, _ := strings.Cut(e.Proxy, "-")
	path, query, _ := strings.Cut(e.URI, "?")
	what := path[strings.LastIndex(path, "/")+1:]
	switch {
	case strings.HasPrefix(what, "bk-"):
		what = "booking"
	case strings.Contains(path, "/references/"):
		what = "close reference"
	case strings.Contains(query, "client_reference="):
		what = "bookings by reference"
	case server == "api" && what != "status":
		what = "ticket"
	}
	return fmt.Sprintf("%s %s %s", server, e.Method, what)
}

// String is the table: a line for each point, a column for what happened there, and
// a letter for each promise that was broken.
func (m *matrix) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	type point struct {
		story string
		n     int
		call  string
	}
	cells, total := map[point]map[string]string{}, verdict{}
	stuck, failed := 0, 0
	for _, r := range m.rows {
		p := point{r.story, r.n, r.call}
		if cells[p] == nil {
			cells[p] = map[string]string{}
		}
		cells[p][r.happening] = r.letters()
		total.doubles, total.lost, total.leaked = total.doubles+r.doubles, total.lost+r.lost, total.leaked+r.leaked
		if r.stuck {
			stuck++
		}
		if r.failed {
			failed++
		}
	}
	var b strings.Builder
	b.WriteString("the crash matrix: D double, L lost, K leaked, S stuck, F failed otherwise\n")
	for i, h := range happenings {
		fmt.Fprintf(&b, "  %c  %s\n", 'a'+i, h.name)
	}
	lives := 0
	for _, s := range stories {
		points := []point{}
		for p := range cells {
			if p.story == s.name {
				points = append(points, p)
			}
		}
		if len(points) == 0 {
			continue
		}
		lives++
		slices.SortFunc(points, func(x, y point) int { return x.n - y.n })
		fmt.Fprintf(&b, "%-64s", s.name)
		for i := range happenings {
			fmt.Fprintf(&b, " %c", 'a'+i)
		}
		b.WriteString("\n")
		for _, p := range points {
			fmt.Fprintf(&b, "  %2d  %-58s", p.n, p.call)
			for _, h := range happenings {
				cell, ok := cells[p][h.name]
				if !ok {
					cell = "-"
				}
				b.WriteString(" " + cell)
			}
			b.WriteString("\n")
		}
	}
	fmt.Fprintf(&b, "%d lives, %d points, %d rows in %v: %d doubles, %d lost, %d leaked, %d stuck, %d failed",
		lives, len(cells), len(m.rows), time.Since(m.began).Round(time.Second), total.doubles, total.lost, total.leaked, stuck, failed)
	return b.String()
}

// letters are what became of a row; a dot is good.
func (r row) letters() string {
	switch {
	case r.doubles > 0:
		return "D"
	case r.lost > 0:
		return "L"
	case r.leaked > 0:
		return "K"
	case r.stuck:
		return "S"
	case r.failed:
		return "F"
	}
	return "."
}

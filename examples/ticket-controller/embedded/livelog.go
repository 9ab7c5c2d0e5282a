package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tetherkube/tether/booking"
	v1 "github.com/tetherkube/tether/examples/ticket-controller/api/v1"
	"github.com/tetherkube/tether/fake"
)

// mood is how a line is meant, and which colour it has.
type mood string

const (
	plain mood = ""
	good  mood = "good"
	bad   mood = "bad"
)

var colours = map[mood]string{plain: "", good: "\x1b[32m", bad: "\x1b[31m"}

// line is one thing that happened.
type line struct {
	mood mood
	who  string // whose act it was: you, controller or airline
	what string // the Ticket or the booking
	text string
}

// liveLog writes lines for people, or as JSON. It is safe for concurrent use.
type liveLog struct {
	colour bool
	json   *slog.Logger // nil for text

	mu  sync.Mutex // guards what follows
	out io.Writer
}

func newLiveLog(o Options) *liveLog {
	l := &liveLog{colour: o.Colour, out: o.Out}
	if o.JSON {
		l.json = slog.New(slog.NewJSONHandler(o.Out, nil))
	}
	return l
}

func (l *liveLog) write(at time.Time, e line) {
	if l.json != nil {
		level := slog.LevelInfo
		if e.mood == bad {
			level = slog.LevelWarn
		}
		l.json.Log(context.Background(), level, e.text, "by", e.who, "about", e.what)
		return
	}
	before, after := "", ""
	if c := colours[e.mood]; l.colour && c != "" {
		before, after = c, "\x1b[0m"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, "%s  %-10s  %-20s  %s%s%s\n", at.Format(time.TimeOnly), e.who, e.what, before, e.text, after)
}

// warn tells what a person should know.
func (l *liveLog) warn(text string) {
	l.write(time.Now(), line{mood: bad, who: "embedded", what: "-", text: text})
}

// request tells of a request to the API server.
func (l *liveLog) request(e fake.APIEntry) {
	for _, one := range ticketLines(e) {
		l.write(time.Now(), one)
	}
}

// call tells of a call of the booking API.
func (l *liveLog) call(e fake.BookingEntry) {
	if one, ok := bookingLine(e); ok {
		l.write(time.Now(), one)
	}
}

// ticketLines is what a request did to a Ticket, as a person would tell it.
func ticketLines(e fake.APIEntry) []line {
	if e.Group != v1.GroupVersion.Group || !e.Done || !e.Changed() {
		return nil
	}
	was, is := ticket(e.Before), ticket(e.After)
	subject := e.Name
	if e.Namespace != "default" {
		subject = e.Namespace + "/" + e.Name
	}
	who := "you"
	if e.User == controllerName {
		who = "controller"
	}
	var lines []line
	say := func(m mood, format string, args ...any) {
		lines = append(lines, line{m, who, subject, fmt.Sprintf(format, args...)})
	}
	switch {
	case is == nil:
		say(plain, "the Ticket is gone")
		return lines
	case was == nil:
		say(plain, "a new Ticket, from %s to %s on %s", is.Spec.From, is.Spec.To, is.Spec.DepartureDate)
		return lines
	}
	if was.DeletionTimestamp == nil && is.DeletionTimestamp != nil {
		say(plain, "is to be deleted, once its booking is cancelled")
	}
	if changed := changes(was.Spec, is.Spec); len(changed) > 0 {
		say(plain, "spec changed: %s", strings.Join(changed, ", "))
	}
	before, now := meta.FindStatusCondition(was.Status.Conditions, "Ready"), meta.FindStatusCondition(is.Status.Conditions, "Ready")
	if now == nil || before != nil && before.Status == now.Status && before.Reason == now.Reason && before.Message == now.Message {
		return lines
	}
	switch {
	case now.Status == "True":
		say(good, "Ready: %s", standing(is))
	case meta.IsStatusConditionTrue(is.Status.Conditions, "Stalled"):
		say(bad, "Stalled, %s: %s", now.Reason, now.Message)
	default:
		say(plain, "not ready yet, %s: %s", now.Reason, now.Message)
	}
	return lines
}

// ticket is the Ticket in JSON; nil for none.
func ticket(raw []byte) *v1.Ticket {
	t := &v1.Ticket{}
	if len(raw) == 0 || json.Unmarshal(raw, t) != nil {
		return nil
	}
	return t
}

// standing is what a Ticket has got.
func standing(t *v1.Ticket) string {
	s := t.Status
	words := []string{string(s.State) + " as " + s.RecordLocator + " on " + t.Spec.DepartureDate}
	if len(s.Seats) > 0 {
		words = append(words, "seats "+strings.Join(s.Seats, " "))
	}
	if s.Price != nil {
		words = append(words, s.Price.Amount+" "+s.Price.Currency)
	}
	return strings.Join(words, ", ")
}

// changes are the fields of a spec that differ, with their values.
func changes(was, is v1.TicketSpec) []string {
	fields := func(s v1.TicketSpec) map[string]json.RawMessage {
		raw, _ := json.Marshal(s) // strings and numbers: cannot fail
		var all map[string]json.RawMessage
		_ = json.Unmarshal(raw, &all) // as above
		return all
	}
	before, after := fields(was), fields(is)
	var names []string
	for _, m := range []map[string]json.RawMessage{before, after} {
		for name := range m {
			if string(before[name]) != string(after[name]) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = fmt.Sprintf("%s from %s to %s", name, value(before[name]), value(after[name]))
	}
	return names
}

func value(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "nothing"
	}
	return strings.Trim(string(raw), `"`)
}

// bookingLine is what a call did at the airline; look-ups that went well are left
// out.
func bookingLine(e fake.BookingEntry) (line, bool) {
	if !e.Done || !e.Op.Mutation() && e.Problem == "" {
		return line{}, false
	}
	l := line{who: "airline", what: e.BookingID}
	if l.what == "" {
		l.what = "-"
	}
	switch {
	case e.Problem != "":
		l.mood, l.text = bad, fmt.Sprintf("refuses to %s: %s", e.Op, e.Problem)
	case e.Replayed:
		l.text = fmt.Sprintf("answers again what it answered before (%s)", e.Op)
	case e.Op == booking.OpCreate:
		l.mood, l.text = good, "has booked"
	case e.Op == booking.OpChange:
		l.mood, l.text = good, "has changed the booking"
	case e.Op == booking.OpCancel:
		l.text = "has cancelled the booking"
	default:
		l.text = "books nothing more under this reference"
	}
	return l, true
}

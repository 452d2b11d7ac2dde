package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/report"
	"sublet/vnet"
)

// heartbeatEvery is how long a stream may be silent: readers, and what is
// between, find out that it broke.
const heartbeatEvery = 15 * time.Second

// getWatch streams samples and changes of state: a tenant's to them, everybody's
// and the hosts' own to the operator, or those of ?tenant=. A reader that falls
// behind what is kept is told so and dropped; one that does not read at all is
// dropped when a write took answerTimeout.
func (s *Server) getWatch(w http.ResponseWriter, r *http.Request, c *call) error {
	tenant := vnet.TenantID(r.URL.Query().Get("tenant"))
	if tenant == "" && !c.Operator {
		tenant = c.Tenant
	}
	if tenant != "" && !c.MayTouch(tenant) {
		return forbidden("only the operator may watch what others have: leave the tenant out")
	}
	if tenant != "" {
		if err := vnet.CheckName(string(tenant)); err != nil {
			return &vnet.FieldError{Path: "tenant", Problem: err.Error()}
		}
	}
	f, leave, err := s.feeds.enter(c.Caller, tenant, time.Now())
	if err != nil {
		return err
	}
	defer leave()
	at, begin, err := s.beginWatch(f, r.Header.Get("Last-Event-ID"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", api.EventStream)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	out := eventWriter{w: w, control: http.NewResponseController(w)}
	if out.write(begin) == nil {
		out.follow(r, f, at)
	}
	return nil
}

// beginWatch is where in a feed a reader goes on, and what they are told before:
// nothing if all that followed their last event is there, else the present states.
func (s *Server) beginWatch(f *feed, last string) (at uint64, text []byte, err error) {
	at, known := f.position(last)
	if known {
		return at, nil, nil
	}
	if last != "" {
		text = eventOf(api.EventGap, "", api.Said{Why: "events were missed: the present states follow"}).Append(text)
	}
	var list []report.Sample
	err = s.look(func(now time.Time, b *lease.Book) error {
		at, _ = f.position("") // what is told of the book from here on comes after it
		list = presentStates(now, b, f.scope.Tenant)
		return nil
	})
	list = slices.DeleteFunc(list, func(one report.Sample) bool {
		return one.Kind == report.KindLease && one.State == report.State(vnet.Ended)
	})
	for i, one := range list {
		id := ""
		if i == len(list)-1 { // a reader that saw only some of them must not go on from here
			id = f.idOf(at)
		}
		text = eventOf(api.EventState, id, one).Append(text)
	}
	return at, text, err
}

// eventOf makes an event of a value that can always be encoded.
func eventOf(name, id string, value any) api.Event {
	data, _ := json.Marshal(value)
	return api.Event{Name: name, ID: id, Data: data}
}

// eventWriter writes events, each at once.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (o eventWriter) write(text []byte) error {
	if err := o.control.SetWriteDeadline(time.Now().Add(answerTimeout)); err != nil {
		return err
	}
	if _, err := o.w.Write(text); err != nil {
		return err
	}
	return o.control.Flush()
}

// end says why the stream ends.
func (o eventWriter) end(why string) {
	_ = o.write(eventOf(api.EventEnd, "", api.Said{Why: why}).Append(nil)) // a reader that went away need not know
}

// follow writes the events after a number until the reader goes away or falls
// behind, or the server stops.
func (o eventWriter) follow(r *http.Request, f *feed, at uint64) {
	beat := time.NewTimer(heartbeatEvery)
	defer beat.Stop()
	for {
		text, number, whole, news := f.next(at)
		switch {
		case !whole:
			o.end("you read more slowly than there is news: come back with the last event's id")
			return
		case number > 0:
			at = number
		default:
			select {
			case <-news:
				continue
			case <-beat.C:
				text = []byte(":\n\n")
			case <-r.Context().Done():
				o.end("the server stops: come back with the last event's id")
				return
			}
		}
		if o.write(text) != nil {
			return
		}
		beat.Reset(heartbeatEvery)
	}
}

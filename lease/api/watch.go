package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"sublet/report"
	"sublet/vnet"
)

// EventStream is the media type of GET /v1/watch: server-sent events (WHATWG
// HTML, section 9.2). Lines that begin with a colon are heartbeats.
const EventStream = "text/event-stream"

// Event is one server-sent event. Data is one line of JSON.
type Event struct {
	Name string // EventState, EventSamples, EventGap or EventEnd
	ID   string // for Last-Event-ID; "": none
	Data []byte
}

// Names of events.
const (
	EventState   = "state"   // a report.Sample: something has this state now
	EventSamples = "samples" // a list of report.Sample: what a host's parts say and have counted
	EventGap     = "gap"     // a Said: events were missed; the present states follow
	EventEnd     = "end"     // a Said: why the server ends the stream
)

// Said is the data of EventGap and EventEnd.
type Said struct {
	Why string `json:"why"`
}

// Append writes an event as it is on the wire.
func (e Event) Append(to []byte) []byte {
	if e.ID != "" {
		to = append(append(append(to, "id: "...), e.ID...), '\n')
	}
	to = append(append(append(to, "event: "...), e.Name...), '\n')
	to = append(append(to, "data: "...), e.Data...)
	return append(to, "\n\n"...)
}

// maxEvent bounds one line of an event in bytes.
const maxEvent = 16 << 20

// Events reads a stream of events and hands each to do, until the stream ends
// (nil), breaks, or do fails.
func Events(stream io.Reader, do func(Event) error) error {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxEvent)
	var e Event
	for lines.Scan() {
		line := lines.Bytes()
		if len(line) == 0 {
			if e.Name != "" {
				if err := do(e); err != nil {
					return err
				}
			}
			e = Event{}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			e.Name = string(value)
		case "id":
			e.ID = string(value)
		case "data":
			e.Data = bytes.Clone(value)
		}
	}
	return lines.Err()
}

// Samples are those of an event of states or samples; none of others.
func (e Event) Samples() (list []report.Sample, err error) {
	switch e.Name {
	case EventState:
		list = make([]report.Sample, 1)
		err = json.Unmarshal(e.Data, &list[0])
	case EventSamples:
		err = json.Unmarshal(e.Data, &list)
	}
	return list, err
}

// ErrEnded says why the server ended a stream.
var ErrEnded = errors.New("the server ended the stream")

// Watch hands every event to do, until ctx ends or the stream does. The stream
// begins with the present states, or with what followed the event of lastID as
// far as the server still has that. tenant is the operator's choice of whose
// events; "": everybody's, or the caller's.
func (c *Client) Watch(ctx context.Context, tenant vnet.TenantID, lastID string, do func(Event) error) error {
	path := "/v1/watch"
	if tenant != "" {
		path += "?tenant=" + url.QueryEscape(string(tenant))
	}
	request, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if lastID != "" {
		request.Header.Set("Last-Event-ID", lastID)
	}
	response, err := c.exchange(request)
	if err != nil {
		return c.explain(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return readProblem(response)
	}
	if t := response.Header.Get("Content-Type"); !strings.HasPrefix(t, EventStream) {
		return fmt.Errorf("watch the server: it answers with %s", t)
	}
	err = Events(response.Body, func(e Event) error {
		var said Said
		if e.Name == EventEnd && json.Unmarshal(e.Data, &said) == nil {
			return fmt.Errorf("%w: %s", ErrEnded, said.Why)
		}
		return do(e)
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

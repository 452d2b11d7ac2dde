package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"sublet/lease/api"
	"sublet/vnet"
)

const (
	bodyTimeout   = 30 * time.Second // to receive a body
	answerTimeout = time.Minute      // to take an answer
	maxWait       = time.Minute      // of a long poll
)

// maxElements bounds the objects and lists of a body: the largest request
// (20,000 links) has some 110,000, and each can take 200 bytes here.
const maxElements = 250_000

// decode reads a body strictly: one JSON value of bounded size, with no fields
// but those that the value has.
func (s *Server) decode(w http.ResponseWriter, r *http.Request, c *call, value any) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return &vnet.FieldError{Problem: "the body must be JSON: send Content-Type application/json"}
	}
	leave, err := s.limiter.body(c.Caller)
	if err != nil {
		return err
	}
	defer leave()
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	defer s.turn(len(body))()
	return unmarshal(body, value)
}

// turn waits for a processor to parse a body of so many bytes on; done gives it
// back.
func (s *Server) turn(bytes int) (done func()) {
	if bytes <= largeBody {
		return func() {}
	}
	<-s.deciders.processors
	return func() { s.deciders.processors <- struct{}{} }
}

// largeBody is from how many bytes on reading a body takes turns with decisions.
const largeBody = 32 << 10

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil {
		return nil, fmt.Errorf("bound the time of a body: %w", err)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, badBody(err)
	}
	// Braces inside of texts count too: nobody needs that many.
	if n := bytes.Count(body, []byte{'{'}) + bytes.Count(body, []byte{'['}); n > maxElements {
		return nil, &api.Problem{Status: http.StatusRequestEntityTooLarge,
			Detail: fmt.Sprintf("the body has %d objects and lists, more than %d: split the request", n, maxElements)}
	}
	return body, control.SetReadDeadline(time.Time{})
}

// badBody says why a body could not be received.
func badBody(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return &api.Problem{Status: http.StatusRequestEntityTooLarge,
			Detail: fmt.Sprintf("the body is larger than %d MiB: split the request", large.Limit>>20)}
	}
	return &vnet.FieldError{Problem: "the body did not come in whole: send it again"}
}

// answer writes a value.
func answer(w http.ResponseWriter, status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout)); err != nil {
		return fmt.Errorf("bound the time of an answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body) // a caller that went away needs no answer
	return nil
}

// waitOf reads a long poll's bound; 0 when there is none.
func waitOf(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 || wait > maxWait {
		return 0, &vnet.FieldError{Path: "wait", Problem: fmt.Sprintf("%q is not a duration between 0s and %s", text, maxWait)}
	}
	return wait, nil
}

// poll calls ask, again after every change of the book, until it is satisfied,
// fails, or the wait is over.
func (s *Server) poll(r *http.Request, ask func() (satisfied bool, err error)) error {
	wait, err := waitOf(r)
	if err != nil {
		return err
	}
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if satisfied, err := ask(); satisfied || err != nil || wait == 0 {
			return err
		}
		select {
		case <-changed:
		case <-over.C:
			return nil
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}

package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"sublet/internal/problem"
	"sublet/internal/steady"
)

// Refusal is an error of Save and Bring that has a status of HTTP.
type Refusal struct {
	Status int
	error
}

// Refuse gives an error its status.
func Refuse(status int, err error) error { return Refusal{status, err} }

// Unwrap is what was refused.
func (r Refusal) Unwrap() error { return r.error }

// Carried is what is stated with kept files that the server takes from one host to
// another: tenants state nothing.
const Carried = "carried"

// mostMoving bounds the kept files that are under way at a time, of all nodes.
const mostMoving = 4

// mayMove takes one of those, or answers why not.
func (h *Host) mayMove(w http.ResponseWriter) bool {
	if h.moving.take("", mostMoving) {
		return true
	}
	problem.Write(w, http.StatusServiceUnavailable, fmt.Sprintf("kept files of %d nodes of this host are being saved or brought, the most there can be: try again later", mostMoving))
	return false
}

// save writes what a node keeps. An archive that ends early ends without an end.
func (h *Host) save(w http.ResponseWriter, r *http.Request) {
	h.saved(w, "application/zstd", func(to io.Writer) error {
		return h.Save(r.Context(), r.PathValue("namespace"), r.URL.Query().Has(Carried), to)
	})
}

// saveSwitch writes what an OpenFlow switch was told and has counted.
func (h *Host) saveSwitch(w http.ResponseWriter, r *http.Request) {
	h.saved(w, "application/x-tar", func(to io.Writer) error { return h.SaveSwitch(r.PathValue("namespace"), to) })
}

// send writes what a machine is.
func (h *Host) send(w http.ResponseWriter, r *http.Request) {
	h.saved(w, "application/octet-stream", func(to io.Writer) error { return h.Send(r.Context(), r.PathValue("namespace"), to) })
}

// saved answers with what is written. What ends early ends without an end.
func (h *Host) saved(w http.ResponseWriter, kind string, write func(io.Writer) error) {
	if !h.mayMove(w) {
		return
	}
	defer h.moving.give("")
	w.Header().Set("Content-Type", kind)
	to := &steady.Writer{ResponseWriter: w}
	defer to.End()
	err := write(to)
	if err == nil {
		return
	}
	if to.Begun {
		panic(http.ErrAbortHandler)
	}
	refuse(w, err)
}

// bring replaces what a node keeps.
func (h *Host) bring(w http.ResponseWriter, r *http.Request) {
	h.brought(w, r, func(from io.Reader) error {
		return h.Bring(r.Context(), r.PathValue("namespace"), r.URL.Query().Has(Carried), from)
	})
}

// bringSwitch gives an OpenFlow switch what another one was told and has counted.
func (h *Host) bringSwitch(w http.ResponseWriter, r *http.Request) {
	h.brought(w, r, func(from io.Reader) error { return h.BringSwitch(r.Context(), r.PathValue("namespace"), from) })
}

// takeIn has a machine become what is sent.
func (h *Host) takeIn(w http.ResponseWriter, r *http.Request) {
	h.brought(w, r, func(from io.Reader) error { return h.Take(r.Context(), r.PathValue("namespace"), from) })
}

// goOn has a machine run that has come.
func (h *Host) goOn(w http.ResponseWriter, r *http.Request) {
	if err := h.GoOn(r.PathValue("namespace")); err != nil {
		refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// brought reads what is brought.
func (h *Host) brought(w http.ResponseWriter, r *http.Request, read func(io.Reader) error) {
	if !h.mayMove(w) {
		return
	}
	defer h.moving.give("")
	body := steady.Body(w, r)
	if err := read(body); err != nil {
		_, _ = io.CopyN(io.Discard, body, mostUnread) // so that the sender hears the answer
		refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// mostUnread is how much is read of an archive that was refused.
const mostUnread = 1 << 20

func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if refusal := (Refusal{}); errors.As(err, &refusal) {
		status = refusal.Status
	}
	problem.Write(w, status, err.Error())
}

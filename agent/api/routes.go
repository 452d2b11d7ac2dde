package api

import (
	"encoding/json"
	"fmt"
	"net/http"

	"sublet/internal/problem"
	"sublet/report"
)

// mostRoutes bounds the routes that are brought, in bytes.
const mostRoutes = report.MostLearned * 256

// learned are the routes that a router has learned.
func (h *Host) learned(w http.ResponseWriter, r *http.Request) {
	list, err := h.Learned(r.PathValue("namespace"))
	answer(w, list, err)
}

// keep gives a router the routes of another one.
func (h *Host) keep(w http.ResponseWriter, r *http.Request) {
	var list []report.Learned
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostRoutes)).Decode(&list)
	if err == nil && len(list) > report.MostLearned {
		err = fmt.Errorf("they are %d, and may be %d", len(list), report.MostLearned)
	}
	if err != nil {
		problem.Write(w, http.StatusBadRequest, "read routes: "+err.Error())
		return
	}
	if err := h.Keep(r.PathValue("namespace"), list); err != nil {
		refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

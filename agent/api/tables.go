package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"sublet/internal/problem"
	"sublet/plan"
)

// mostTable bounds a change of a table of tunnels, in bytes.
const mostTable = plan.MaxTunnelEntries * 160

// tables tells of the operator's own tunnels.
func (h *Host) tables(w http.ResponseWriter, _ *http.Request) {
	list, err := h.Tables()
	answer(w, list, err)
}

// changeTable changes one of their tables, or nothing.
func (h *Host) changeTable(w http.ResponseWriter, r *http.Request) {
	var change plan.TableChange
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostTable))
	body.DisallowUnknownFields()
	if err := body.Decode(&change); err != nil {
		problem.Write(w, http.StatusBadRequest, "read the change of a table: "+err.Error())
		return
	}
	if err := h.ChangeTable(change); err != nil {
		refuse(w, tableRefusal(err))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func tableRefusal(err error) error {
	switch {
	case errors.Is(err, plan.ErrTableConflict):
		return Refuse(http.StatusConflict, err)
	case errors.Is(err, plan.ErrNoTable):
		return Refuse(http.StatusNotFound, err)
	case errors.As(err, new(plan.BadTable)):
		return Refuse(http.StatusBadRequest, err)
	}
	return err
}

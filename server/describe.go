package server

import (
	"net/http"

	"sublet/lease/api"
)

// getVersion says which version of the API this is.
func (s *Server) getVersion(w http.ResponseWriter, _ *http.Request, _ *call) error {
	return answer(w, http.StatusOK, api.Version{APIVersion: api.APIVersion})
}

// getDescription hands out this API's description (OpenAPI 3.0).
func (s *Server) getDescription(w http.ResponseWriter, _ *http.Request, _ *call) error {
	w.Header().Set("Content-Type", "text/yaml")
	w.Write(api.Description) // a caller that went away needs no answer
	return nil
}

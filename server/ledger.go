package server

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"sublet/lease/api"
	"sublet/vnet"
)

// mostRecords bounds a page.
const mostRecords = 1000

// ledgerMark is the form of a page's mark.
var ledgerMark = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}/[0-9]{20}$`)

// getLedger answers a page of all leases that ever were: the caller's, or
// anybody's to the operator. A page may be short, even empty, before the last.
func (s *Server) getLedger(w http.ResponseWriter, r *http.Request, c *call) error {
	q, err := ledgerQuery(r)
	if err != nil {
		return err
	}
	if !c.Operator {
		if q.Tenant != "" && q.Tenant != c.Tenant {
			return forbidden("only the operator sees other tenants' leases")
		}
		q.Tenant = c.Tenant
	}
	records, next, err := s.store.Ledger(r.Context(), q.Tenant, q.After, q.Limit)
	if err != nil {
		return unavailable(err)
	}
	records = slices.DeleteFunc(records, func(r vnet.Record) bool { return !wants(q, r) })
	return answer(w, http.StatusOK, api.LedgerPage{Records: append([]vnet.Record{}, records...), Next: next})
}

// wants says whether a lease's time, as it turned out, touches the query's.
func wants(q api.LedgerQuery, r vnet.Record) bool {
	end := r.End
	if !r.Ended.IsZero() {
		end = r.Ended
	}
	return (q.Until.IsZero() || r.Start.Before(q.Until)) && (q.From.IsZero() || end.IsZero() || end.After(q.From))
}

func ledgerQuery(r *http.Request) (q api.LedgerQuery, err error) {
	values := r.URL.Query()
	q.Tenant, q.After, q.Limit = vnet.TenantID(values.Get("tenant")), values.Get("after"), mostRecords
	if q.Tenant != "" {
		if err := vnet.CheckName(string(q.Tenant)); err != nil {
			return q, &vnet.FieldError{Path: "tenant", Problem: err.Error()}
		}
	}
	if q.After != "" && !ledgerMark.MatchString(q.After) {
		return q, &vnet.FieldError{Path: "after", Problem: "is no mark: state what next of the page before says"}
	}
	if text := values.Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > mostRecords {
			return q, &vnet.FieldError{Path: "limit", Problem: fmt.Sprintf("is not a number from 1 to %d", mostRecords)}
		}
	}
	if q.From, err = timeOf(r, "from", time.Time{}); err != nil {
		return q, err
	}
	q.Until, err = timeOf(r, "until", time.Time{})
	return q, err
}

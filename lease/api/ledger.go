package api

import (
	"time"

	"sublet/vnet"
)

// LedgerPage is some of the ledger, by tenant and serial.
type LedgerPage struct {
	Records []vnet.Record `json:"records"`
	// Next is what after= asks for the next page with; "": this is the last.
	Next string `json:"next,omitempty"`
}

// LedgerQuery says what of the ledger is wanted.
type LedgerQuery struct {
	Tenant vnet.TenantID // "": the caller's; for the operator everybody's
	From   time.Time     // leases that had not ended before it; zero: any
	Until  time.Time     // leases that had begun before it; zero: any
	After  string        // LedgerPage.Next
	Limit  int           // records that are looked at; 0: mostRecords
}

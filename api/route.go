package api

import (
	"net/http"
	"slices"
)

// Route is one call that the server answers.
type Route struct {
	Method string
	Path   string
	Key    KeyKind
	Dev    bool // mounted in development alone
	Own    bool // a POST that keeps its answer with its effect, in one transaction
	Asks   bool // judges what stands behind the question mark itself; elsewhere nothing may
	do     func(*Server, *call) error
}

const (
	sessionsPath = "/v1/whatsapp/checkout/sessions"
	chargesPath  = "/v1/charges"
	refundsPath  = "/v1/refunds"
	paymentsPath = "/v1/payments"
	projectsPath = "/v1/projects"
	logoutPath   = "/v1/auth/logout"
	railsPath    = "/v1/rails/"
	noticesPath  = railsPath + ":rail/notifications"
)

// Routes is every call there is, in one table. The documentation is held
// against it.
func Routes() []Route {
	get, post, put, remove := http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	return append([]Route{
		{Method: get, Path: "/livez", Key: KeyNone, do: (*Server).alive},
		{Method: get, Path: "/readyz", Key: KeyNone, do: (*Server).ready},

		{Method: post, Path: "/v1/auth/signup", Key: KeyNone, Own: true, do: (*Server).signUp},
		{Method: post, Path: "/v1/auth/login", Key: KeyNone, Own: true, do: (*Server).logIn},
		{Method: post, Path: logoutPath, Key: KeyDashboard, Own: true, do: (*Server).logOut},

		{Method: post, Path: projectsPath, Key: KeyDashboard, Own: true, do: (*Server).addProject},
		{Method: get, Path: projectsPath, Key: KeyDashboard, Asks: true, do: (*Server).listProjects},
		{Method: get, Path: projectsPath + "/:id", Key: KeyDashboard, do: (*Server).readProject},
		{Method: post, Path: projectsPath + "/:id/keys", Key: KeyDashboard, Own: true, do: (*Server).addKey},
		{Method: get, Path: projectsPath + "/:id/keys", Key: KeyDashboard, Asks: true, do: (*Server).listKeys},
		{Method: get, Path: projectsPath + "/:id/keys/:kid", Key: KeyDashboard, do: (*Server).readKey},
		{Method: post, Path: projectsPath + "/:id/keys/:kid/rotate", Key: KeyDashboard, Own: true, do: (*Server).rotateKey},
		{Method: remove, Path: projectsPath + "/:id/keys/:kid", Key: KeyDashboard, do: (*Server).revokeKey},
		{Method: post, Path: projectsPath + "/:id/kyc", Key: KeyDashboard, Own: true, do: (*Server).submitKYC},
		{Method: get, Path: projectsPath + "/:id/kyc", Key: KeyDashboard, do: (*Server).readKYC},

		{Method: post, Path: sessionsPath, Key: KeySecret, Own: true, do: (*Server).openSession},
		{Method: get, Path: sessionsPath, Key: KeySecret, Asks: true, do: (*Server).listSessions},
		{Method: get, Path: sessionsPath + "/:id", Key: KeySession, do: (*Server).readSession},
		{Method: get, Path: sessionsPath + "/:id/receipt.png", Key: KeySession, do: (*Server).readReceipt},
		{Method: post, Path: sessionsPath + "/:id/cancel", Key: KeySecret, Own: true, do: (*Server).cancelSession},
		{Method: post, Path: sessionsPath + "/:id/pay/bank-transfer", Key: KeySession, do: (*Server).payByTransfer},
		{Method: post, Path: sessionsPath + "/:id/pay/ussd", Key: KeySession, do: (*Server).payByUSSD},
		{Method: post, Path: sessionsPath + "/:id/pay/card", Key: KeySession, do: (*Server).payByCard},

		{Method: post, Path: endpointsPath, Key: KeySecret, Own: true, do: (*Server).addEndpoint},
		{Method: get, Path: endpointsPath, Key: KeySecret, Asks: true, do: (*Server).listEndpoints},
		{Method: get, Path: endpointsPath + "/:id", Key: KeySecret, do: (*Server).readEndpoint},
		{Method: http.MethodPatch, Path: endpointsPath + "/:id", Key: KeySecret, do: (*Server).changeEndpoint},
		{Method: remove, Path: endpointsPath + "/:id", Key: KeySecret, do: (*Server).removeEndpoint},
		{Method: post, Path: endpointsPath + "/:id/rotate-secret", Key: KeySecret, Own: true, do: (*Server).rotateSecret},
		{Method: post, Path: endpointsPath + "/:id/ping", Key: KeySecret, Own: true, do: (*Server).pingEndpoint},
		{Method: post, Path: endpointsPath + "/:id/replay", Key: KeySecret, Own: true, do: (*Server).replayEndpoint},

		{Method: get, Path: eventsPath, Key: KeySecret, Asks: true, do: (*Server).listEvents},
		{Method: get, Path: eventsPath + "/:id", Key: KeySecret, do: (*Server).readEvent},
		{Method: get, Path: eventsPath + "/:id/deliveries", Key: KeySecret, Asks: true, do: (*Server).listDeliveries},
		{Method: post, Path: eventsPath + "/:id/resend", Key: KeySecret, Own: true, do: (*Server).resendEvent},

		{Method: get, Path: verificationPath + "/banks", Key: KeyPublic, Asks: true, do: (*Server).listBanks},
		{Method: post, Path: verificationPath + "/accounts/resolve", Key: KeySecret, do: (*Server).resolveAccount},
		{Method: post, Path: identitiesPath, Key: KeySecret, Own: true, do: (*Server).verifyIdentity},
		{Method: get, Path: identitiesPath + "/:id", Key: KeySecret, do: (*Server).readIdentity},

		{Method: post, Path: noticesPath, Key: KeyNone, Asks: true, do: (*Server).hearBank},

		{Method: post, Path: "/v1/test/bank/transfers", Key: KeyTest, do: (*Server).playTransfer},
		{Method: post, Path: "/v1/test/bank/reversals", Key: KeyTest, do: (*Server).playReversal},
		{Method: post, Path: "/v1/test/ussd/:code/complete", Key: KeyTest, do: (*Server).playUSSD},
		{Method: post, Path: "/v1/test/cards/:id/complete", Key: KeyTest, do: (*Server).playCard},
		{Method: put, Path: "/v1/test/bank/conditions", Key: KeyTest, do: (*Server).setConditions},
		{Method: get, Path: "/v1/test/bank/calls", Key: KeyTest, Asks: true, do: (*Server).listBankCalls},
		{Method: post, Path: "/v1/test/clock", Key: KeyTest, do: (*Server).advanceClock},
		{Method: get, Path: "/v1/test/whatsapp/pairing", Key: KeyTest, do: (*Server).readPairing},
		{Method: post, Path: "/v1/test/phones", Key: KeyTest, do: (*Server).addPhone},
		{Method: get, Path: "/v1/test/phones", Key: KeyTest, do: (*Server).listPhones},
		{Method: post, Path: "/v1/test/phones/:phone/messages", Key: KeyTest, do: (*Server).typeMessage},
		{Method: get, Path: "/v1/test/phones/:phone/messages", Key: KeyTest, Asks: true, do: (*Server).readMessages},
		{Method: remove, Path: "/v1/test/phones/:phone", Key: KeyTest, do: (*Server).removePhone},
	}, slices.Concat(docRoutes(), moneyRoutes(), pageRoutes())...)
}

// docRoutes are the documentation's pages.
func docRoutes() []Route {
	get := http.MethodGet
	return []Route{
		{Method: get, Path: "/openapi.yaml", Key: KeyNone, do: (*Server).serveDocument},
		{Method: get, Path: "/openapi.json", Key: KeyNone, do: (*Server).serveDocumentAsJSON},
		{Method: get, Path: docsPath, Key: KeyNone, do: (*Server).serveReference},
		{Method: get, Path: docsPath + "/assets/:file", Key: KeyNone, do: (*Server).serveAsset},
		{Method: get, Path: docErrors, Key: KeyNone, do: (*Server).serveErrors},
		{Method: get, Path: docErrors + "/:code", Key: KeyNone, do: (*Server).serveError},
		{Method: get, Path: docsPath + "/snippets", Key: KeyNone, do: (*Server).serveSnippets},
	}
}

// moneyRoutes are the calls about money that comes and goes.
func moneyRoutes() []Route {
	get, post, put := http.MethodGet, http.MethodPost, http.MethodPut
	return []Route{
		{Method: post, Path: chargesPath, Key: KeySecret, Own: true, do: (*Server).openCharge},
		{Method: get, Path: chargesPath, Key: KeySecret, Asks: true, do: (*Server).listCharges},
		{Method: get, Path: chargesPath + "/by-reference/:ref", Key: KeySecret, do: (*Server).readChargeByReference},
		{Method: get, Path: chargesPath + "/:id", Key: KeySecret, do: (*Server).readCharge},
		{Method: post, Path: chargesPath + "/:id/requery", Key: KeySecret, do: (*Server).requeryCharge},
		{Method: get, Path: chargesPath + "/:id/timeline", Key: KeySecret, Asks: true, do: (*Server).readTimeline},

		{Method: get, Path: paymentsPath, Key: KeySecret, Asks: true, do: (*Server).listPayments},
		{Method: get, Path: paymentsPath + "/:id", Key: KeySecret, do: (*Server).readPayment},
		{Method: post, Path: paymentsPath + "/:id/resolve", Key: KeySecret, Own: true, do: (*Server).resolvePayment},
		{Method: get, Path: "/v1/balance", Key: KeySecret, do: (*Server).readBalance},
		{Method: get, Path: "/v1/project", Key: KeySecret, do: (*Server).readOwnProject},

		{Method: post, Path: refundsPath, Key: KeySecret, Own: true, do: (*Server).openRefund},
		{Method: get, Path: refundsPath, Key: KeySecret, Asks: true, do: (*Server).listRefunds},
		{Method: get, Path: refundsPath + "/:id", Key: KeySecret, do: (*Server).readRefund},
		{Method: post, Path: refundsPath + "/:id/retry", Key: KeySecret, Own: true, do: (*Server).retryRefund},

		{Method: get, Path: "/v1/reconciliation", Key: KeySecret, Asks: true, do: (*Server).reconcile},

		{Method: get, Path: settlementsPath, Key: KeySecret, Asks: true, do: (*Server).listSettlements},
		{Method: get, Path: settlementsPath + "/:id", Key: KeySecret, do: (*Server).readSettlement},
		{Method: get, Path: settlementsPath + "/:id/transactions", Key: KeySecret, Asks: true, do: (*Server).listSettlementLines},
		{Method: put, Path: projectsPath + "/:id/settlement-account", Key: KeyDashboard, do: (*Server).putSettlementAccount},
		{Method: get, Path: projectsPath + "/:id/settlement-account", Key: KeyDashboard, Asks: true, do: (*Server).readSettlementAccount},
		{Method: post, Path: "/v1/test/settlements/run", Key: KeyTest, do: (*Server).runSettlements},
	}
}

// pageRoutes are the phone page and its own calls.
func pageRoutes() []Route {
	get, post, remove := http.MethodGet, http.MethodPost, http.MethodDelete
	return []Route{
		{Method: get, Path: "/phone", Key: KeyNone, Dev: true, Asks: true, do: (*Server).servePhonePage},
		{Method: get, Path: "/phone/:file", Key: KeyNone, Dev: true, Asks: true, do: (*Server).servePhonePage},
		{Method: get, Path: "/wa.me/:number", Key: KeyNone, Dev: true, Asks: true, do: (*Server).followLink},
		{Method: post, Path: "/phone/api/phones", Key: KeyPhone, Dev: true, do: (*Server).addPhone},
		{Method: get, Path: "/phone/api/phones", Key: KeyPhone, Dev: true, do: (*Server).listPhones},
		{Method: post, Path: "/phone/api/phones/:phone/messages", Key: KeyPhone, Dev: true, do: (*Server).typeMessage},
		{Method: get, Path: "/phone/api/phones/:phone/messages", Key: KeyPhone, Dev: true, Asks: true, do: (*Server).readMessages},
		{Method: get, Path: "/phone/api/phones/:phone/live", Key: KeyPhone, Dev: true, do: (*Server).livePhone},
		{Method: post, Path: "/phone/api/phones/:phone/read", Key: KeyPhone, Dev: true, do: (*Server).markRead},
		{Method: remove, Path: "/phone/api/phones/:phone", Key: KeyPhone, Dev: true, do: (*Server).removePhone},
		{Method: post, Path: "/phone/api/bank/transfers", Key: KeyPhone, Dev: true, do: (*Server).playTransfer},
		{Method: post, Path: "/phone/api/ussd/:code/complete", Key: KeyPhone, Dev: true, do: (*Server).dial},
	}
}

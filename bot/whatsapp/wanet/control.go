package wanet

import "net/http"

func (n *Network) control(mux *http.ServeMux) {}

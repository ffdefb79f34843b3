<?php
// Makes the account number of a session: php pay-bank-transfer.php wsp_sess_…
// Calling it again gives the same one.

$url = getenv('TILL_URL') . '/v1/whatsapp/checkout/sessions/' . $argv[1] . '/pay/bank-transfer';
$answer = file_get_contents($url, false, stream_context_create(['http' => [
    'method' => 'POST',
    'header' => ['Authorization: Bearer ' . getenv('TILL_SECRET_KEY'), 'Content-Length: 0'],
    'ignore_errors' => true,
]]));
$reply = json_decode($answer, true);
if (!($reply['status'] ?? false)) {
    fwrite(STDERR, $reply['error']['code'] . ': ' . $reply['error']['message'] . "\n");
    exit(1);
}
echo json_encode($reply['data']), "\n";

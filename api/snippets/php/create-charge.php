<?php
// Opens a session in WhatsApp and makes its account number: give checkoutUrl to
// the payer, or show virtualAccount.

$answer = file_get_contents(getenv('TILL_URL') . '/v1/charges', false, stream_context_create(['http' => [
    'method' => 'POST',
    'header' => [
        'Authorization: Bearer ' . getenv('TILL_SECRET_KEY'),
        'Content-Type: application/json',
        'Idempotency-Key: ' . bin2hex(random_bytes(16)),
    ],
    'content' => json_encode(['amount' => 500000, 'customerEmail' => 'ada@example.com']),
    'ignore_errors' => true,
]]));
$reply = json_decode($answer, true);
if (!($reply['status'] ?? false)) {
    fwrite(STDERR, $reply['error']['code'] . ': ' . $reply['error']['message'] . "\n");
    exit(1);
}
echo json_encode($reply['data']), "\n";

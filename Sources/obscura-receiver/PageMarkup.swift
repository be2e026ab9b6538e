/// The structure of the page. Texts with `data-t` are set in the reader's language by the script.
let pageMarkup = #"""
    <!DOCTYPE html>
    <html lang="en" dir="ltr">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Obscura</title>
    <link rel="icon" href="data:,">
    <style nonce="@NONCE@">@STYLE@</style>
    </head>
    <body>
    <main>
    <header>
    <h1 id="title" data-t="title">Send photos</h1>
    <label class="lang"><span class="hidden" data-t="language">Language</span><select id="language"></select></label>
    </header>
    <noscript><p>This page needs JavaScript.</p></noscript>
    <section id="words" aria-labelledby="words-title">
    <h2 id="words-title" data-t="wordsTitle">Is this the right computer?</h2>
    <p class="words" lang="en" dir="ltr">@WORDS@</p>
    <p data-t="wordsText"></p>
    </section>
    <section id="code" hidden aria-labelledby="code-title">
    <h2 id="code-title" data-t="codeTitle">Code</h2>
    <p id="code-text" role="alert" data-t="codeText"></p>
    <form id="code-form"><label><span data-t="codeLabel">Code</span>
    <input id="code-input" autocomplete="off" autocapitalize="none" spellcheck="false" dir="ltr"></label>
    <button data-t="codeButton">Connect</button></form>
    </section>
    <section id="send" hidden aria-labelledby="title">
    <p id="target"></p>
    <p id="left" class="warn" data-t="left" hidden></p>
    <div class="choices">
    <label class="button"><input id="photos" type="file" accept="image/*,video/*" multiple>
    <b data-t="photos">Photos</b><small data-t="photosText"></small></label>
    <label class="button"><input id="originals" type="file" multiple>
    <b data-t="originals">Originals</b><small data-t="originalsText"></small></label>
    </div>
    <p id="spoken" class="hidden" role="status"></p>
    <div id="progress" hidden>
    <progress id="bar" max="1000" value="0" aria-labelledby="status"></progress>
    <p id="status"></p>
    </div>
    <section id="results" hidden aria-labelledby="results-title">
    <h2 id="results-title" data-t="resultsTitle">What came</h2>
    <ul id="summary"></ul>
    <button id="again" hidden data-t="again">Send these all the same</button>
    <ul id="files"></ul>
    </section>
    <section id="recent" hidden aria-labelledby="recent-title">
    <h2 id="recent-title" data-t="recentTitle">On the computer now</h2>
    <div id="days"></div>
    </section>
    </section>
    </main>
    <script nonce="@NONCE@">"use strict";
    @SCRIPT@</script>
    </body>
    </html>
    """#

let pageStyle = #"""
    :root{color-scheme:light dark;--back:#fff;--text:#1c1c1e;--soft:#5a5a60;--line:#d6d6da;--card:#f4f4f6;
    --main:#0b57d0;--on:#fff;--warn:#8a4b00;--bad:#b3261e;--good:#146c2e}
    @media(prefers-color-scheme:dark){:root{--back:#121214;--text:#f1f1f3;--soft:#a9a9b0;--line:#3a3a40;--card:#1f1f23;
    --main:#a8c7fa;--on:#062e6f;--warn:#ffb870;--bad:#f2b8b5;--good:#7fd99a}}
    *{box-sizing:border-box}
    body{margin:0;background:var(--back);color:var(--text);font:1.05rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
    main{max-width:40rem;margin:auto;padding:1rem}
    header{display:flex;flex-wrap:wrap;justify-content:space-between;align-items:center;gap:1rem}
    h1{font-size:1.5rem;margin:.3rem 0}h2{font-size:1.1rem;margin:1rem 0 .3rem}p{margin:.4rem 0}
    select,input,button{font:inherit;color:inherit;min-height:2.75rem;border:1px solid var(--line);border-radius:.6rem;
    background:var(--card);padding:.3rem .6rem}
    #code-input{width:100%}button{background:var(--main);color:var(--on);border:0;margin-top:.6rem;padding:.3rem 1.2rem}
    #words{background:var(--card);border-radius:.9rem;padding:.6rem 1rem;color:var(--soft);font-size:.95rem}
    #words h2{margin-top:.2rem}.words{font-size:1.25rem;font-weight:600;color:var(--text);letter-spacing:.02em}
    .choices{display:grid;gap:.8rem;margin:1rem 0}
    @media(min-width:34rem){.choices{grid-template-columns:1fr 1fr}}
    .button{display:block;border-radius:.9rem;padding:1rem;background:var(--main);color:var(--on);cursor:pointer}
    .button+.button{background:var(--card);color:var(--text);border:1px solid var(--line)}
    .button b{display:block;font-size:1.2rem}.button small{display:block;font-size:.9rem}
    .button input,.hidden{position:absolute;width:1px;height:1px;min-height:0;padding:0;overflow:hidden;
    clip-path:inset(50%)}
    .button:focus-within,select:focus-visible,input:focus-visible,button:focus-visible{outline:3px solid var(--main);
    outline-offset:3px}
    progress{width:100%;height:1.2rem;accent-color:var(--main)}
    ul{list-style:none;padding:0;margin:.4rem 0}#files li{border-top:1px solid var(--line);padding:.4rem 0}
    #files b{font-weight:500}#files small{display:block;color:var(--soft)}
    .warn{color:var(--warn)}.bad{color:var(--bad)}.good{color:var(--good)}
    #files small.warn{color:var(--warn)}#files small.bad{color:var(--bad)}#files small.good{color:var(--good)}
    #days div{display:grid;grid-template-columns:repeat(auto-fill,minmax(5rem,1fr));gap:.4rem}
    #days h3{font-size:1rem;margin:.6rem 0 .3rem}
    #days img{width:100%;aspect-ratio:1;object-fit:cover;border-radius:.4rem;background:var(--card)}
    [hidden]{display:none!important}
    """#

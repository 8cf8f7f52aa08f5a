"""What people call countries beyond ISO's own names and their translations: data only, each name once.

A name stands here only where it means one country to everybody; it never overrides a code of ISO's.
"""

from __future__ import annotations

LANGUAGES = (
    "de", "fr", "es", "pt", "pt_BR", "nl", "it", "pl", "da", "sv", "nb_NO", "fi", "cs", "sk", "hu", "ro", "tr",
    "el", "ca", "hr", "bg", "ru", "uk", "ja", "zh_CN", "zh_TW", "ko",
)  # fmt: skip
"""The languages whose names of countries are read from pycountry's catalogues: those found free of names
that stand for another country, or for none."""

CODES = {
    # Reserved by ISO, or used by the European Union, the Olympic committee, football and the press.
    "UK": "GB", "EL": "GR", "ENG": "GB", "SCO": "GB", "WAL": "GB", "NIR": "GB", "GER": "DE", "FRG": "DE",
    "BRD": "DE", "SUI": "CH", "NED": "NL", "POR": "PT", "DEN": "DK", "GRE": "GR", "CRO": "HR", "SLO": "SI",
    "BUL": "BG", "LAT": "LV", "RSA": "ZA", "UAE": "AE", "KSA": "SA", "PRC": "CN", "ROC": "TW", "ROK": "KR",
    "DRC": "CD", "PHI": "PH", "MAS": "MY", "INA": "ID", "VIE": "VN", "CHI": "CL", "PAR": "PY", "URU": "UY",
    "CRC": "CR", "GUA": "GT", "HON": "HN", "NCA": "NI", "ALG": "DZ", "NGR": "NG", "ANG": "AO", "KUW": "KW",
    "IRI": "IR", "VAE": "AE", "EAU": "AE", "RDC": "CD", "EUA": "US", "BVI": "VG",
}  # fmt: skip
"""Two and three letters that are no ISO code of a country today and yet mean just one."""

NAMES = {
    "AE": ["Emirates", "United Arab Emirates (UAE)", "Emirats", "Emiratos Arabes"],
    "AL": ["Shqipëria"],
    "AM": ["Հայաստան"],
    "AT": ["Autriche", "Republik Österreich"],
    "BA": ["Bosnia", "Bosnien", "Bosnie", "Bosnia i Hercegowina"],
    "BE": ["Belgie", "Belgium (Belgique)"],
    "BN": ["Brunei"],
    "BY": ["Byelorussia", "Belorussia", "Weissrussland", "Biélorussie", "Bielorrusia", "Bielorussia", "Wit-Rusland"],
    "CD": [
        "DR Congo", "Congo DR", "Congo (DRC)", "Congo Kinshasa", "Congo-Kinshasa",
        "Democratic Republic of Congo", "Congo, Dem. Rep.", "RD Congo", "Demokratische Republik Kongo",
        "République démocratique du Congo", "República Democrática del Congo",
    ],
    "CG": ["Congo Brazzaville", "Congo-Brazzaville", "Republic of Congo", "Congo, Rep.", "Republik Kongo"],
    "CH": ["Schweizerische Eidgenossenschaft", "Helvetia", "Suiza", "Suíça", "Zwitserland"],
    "CI": ["Ivory Coast", "Elfenbeinküste", "Costa de Marfil", "Costa do Marfim", "Costa d'Avorio", "Cote d Ivoire"],
    "CN": ["PR China", "P.R. China", "P.R. of China", "Mainland China", "VR China", "China PR", "China, P.R."],
    "CV": ["Cape Verde", "Cap Verde", "Kapverden", "Kaapverdië"],
    "CZ": [
        "Czech Republic", "Czech Rep.", "Czech", "Tschechien", "Tschechei", "République tchèque", "Tchéquie",
        "Chequia", "República Checa", "Rep. Checa", "Tsjechië", "Repubblica Ceca", "Česká republika", "Česko",
        "Czechy", "Tchequia",
    ],
    "DE": ["West Germany", "Westdeutschland", "Federal Republic of Germany", "BR Deutschland", "Bundesrepublik"],
    "DO": ["Dominican Rep.", "Rep. Dominicana", "Dominicana"],
    "DZ": ["الجزائر"],
    "EE": ["Eesti"],
    "EG": ["مصر"],
    "FK": ["Falklands", "Falkland Islands", "Malvinas", "Islas Malvinas"],
    "FM": ["Micronesia", "Mikronesien", "Micronésie", "Mikronezja"],
    "GB": [
        "Great Britain", "Britain", "England", "Scotland", "Wales", "Northern Ireland", "United Kingdom (UK)",
        "United Kingdom of Great Britain", "United Kingdom & Northern Ireland", "England, UK", "Scotland, UK",
        "Wales, UK", "Northern Ireland, UK", "Großbritannien", "Schottland", "Nordirland", "Royaume Uni",
        "Grande-Bretagne", "Angleterre", "Écosse", "Pays de Galles", "Irlande du Nord", "Gran Bretaña",
        "Inglaterra", "Escocia", "Gales", "Irlanda del Norte", "Grã-Bretanha", "Escócia", "Gran Bretagna",
        "Inghilterra", "Scozia", "Galles", "Groot-Brittannië", "Engeland", "Schotland", "Anglia", "Szkocja",
        "Storbritannien", "Storbritannia", "Velká Británie",
    ],
    "GE": ["საქართველო"],
    "GR": ["Hellas", "Ellada", "Hellenic Republic"],
    "HK": ["Hong Kong SAR", "Hongkong", "Hong Kong (SAR)", "Hong Kong, China", "Hong Kong SAR China", "HKSAR"],
    "IE": [
        "Republic of Ireland", "Ireland, Republic of", "Irish Republic", "Eire", "Southern Ireland",
        "Ireland (Republic)",
    ],
    "IL": ["ישראל"],
    "IN": ["भारत"],
    "IR": ["Iran", "Persia", "ایران"],
    "JP": ["日本国"],
    "KN": ["St Kitts", "St Kitts & Nevis", "Saint Kitts"],
    "KP": [
        "North Korea", "Korea, North", "Korea (North)", "DPRK", "N. Korea", "Nordkorea", "Corée du Nord",
        "Corea del Norte", "Coreia do Norte", "Corea del Nord", "Noord-Korea", "Korea Północna",
    ],
    "KR": [
        "South Korea", "Korea, South", "Korea (South)", "Republic of Korea", "Korea, Rep.", "Korea Republic",
        "S. Korea", "Südkorea", "Corée du Sud", "Corea del Sur", "Coreia do Sul", "Corea del Sud",
        "Zuid-Korea", "Korea Południowa", "한국",
    ],
    "LA": ["Laos"],
    "LT": ["Lietuva"],
    "LU": ["Luxemburg", "Grand Duchy of Luxembourg", "Letzebuerg"],
    "LV": ["Latvija"],
    "LY": ["Libyan Arab Jamahiriya"],
    "MD": ["Moldova", "Moldavia"],
    "ME": ["Црна Гора"],
    "MK": [
        "Macedonia", "FYROM", "FYR Macedonia", "Former Yugoslav Republic of Macedonia", "Macedonia, FYR",
        "Mazedonien", "Macedonia, the former Yugoslav Republic of", "Macédoine", "Macedônia", "Nordmazedonien",
        "Macédoine du Nord", "Македонија",
    ],
    "MM": ["Burma", "Birma", "Birmanie", "Birmania"],
    "MO": ["Macau", "Macau SAR", "Macao SAR"],
    "MX": ["Mexiko", "México", "Mejico", "Estados Unidos Mexicanos"],
    "NL": [
        "Holland", "Nederland", "Holanda", "Hollande", "Olanda", "Holandia", "Pays Bas", "Paesi Bassi",
        "Países Bajos",
    ],
    "PL": ["Rzeczpospolita Polska"],
    "PS": [
        "Palestine", "Palestina", "Palestyna", "Palestinian Territory", "Palestinian Territories",
        "Palestinian Territory, Occupied", "Palästina",
    ],
    "RE": ["Reunion Island", "La Réunion"],
    "RS": ["Србија", "Srbija"],
    "RU": [
        "Russia", "Russland", "Russie", "Rusia", "Rússia", "Rosja", "Rusland", "Russian Fed.", "Rossiya",
        "Россия",
    ],
    "SA": ["Saudi", "Saudi-Arabien", "Arabie Saoudite", "Kingdom of Saudi Arabia"],
    "SI": ["Slovenija"],
    "SK": ["Slovak Republic", "Slovak Rep.", "Slowakische Republik", "Slowakei"],
    "ST": ["Sao Tome"],
    "SY": ["Syria"],
    "SZ": ["Swaziland", "Swasiland"],
    "TH": ["ไทย"],
    "TL": ["East Timor", "Osttimor", "Timor Oriental"],
    "TR": ["Turkey", "Turkiye", "Türkei", "Turquie", "Turquía", "Turquia", "Turchia", "Turkije", "Turcja"],
    "TT": ["Trinidad", "Tobago"],
    "TW": ["Taiwan", "Taiwan ROC", "Taiwan, R.O.C.", "Republic of China", "Formosa", "Chinese Taipei", "台灣", "台湾"],
    "TZ": ["Tanzania", "Tansania"],
    "US": [
        "United States (USA)", "United States of America (USA)", "USA (United States)", "U.S. of A.",
        "US of A", "EEUU", "EE UU", "E.E.U.U.", "VS van Amerika", "Vereinigte Staaten (USA)",
        "Stany Zjednoczone Ameryki",
    ],
    "VA": ["Vatican", "Vatican City", "Vatikan", "Vaticano", "Vaticaanstad", "Vatikanstadt"],
    "VC": ["St Vincent", "Saint Vincent"],
    "VE": ["Venezuela"],
    "VG": ["British Virgin Islands"],
    "VI": ["US Virgin Islands", "USVI", "U.S. Virgin Islands"],
    "VN": ["Vietnam", "Viet Nam"],
    "ZA": [
        "South Africa", "Republic of South Africa", "Rep. of South Africa", "Südafrika", "Afrique du Sud",
        "Sudafrica",
    ],
}  # fmt: skip
"""Names in daily use, by ISO code."""

AMBIGUOUS = [
    "Korea", "Corée", "Corea", "Coreia", "Coreea", "Koreja", "Κορέα", "Корея", "Congo", "Kongo", "Kongó",
    "Κονγκό", "Конго", "コンゴ", "剛果", "Virgin Islands", "Jungferninseln", "Îles Vierges", "Islas Vírgenes",
    "Ilhas Virgens", "Isole Vergini", "Maagdeneilanden", "Saint Martin", "St. Martin", "San Martín",
    "San Martino", "Sankt Martin", "America", "Antilles", "West Indies", "Timor",
]  # fmt: skip
"""Names of which nobody can say which country they mean."""

WITHOUT_CODE = ["Kosovo", "Kosova", "Northern Cyprus", "Transnistria", "Somaliland"]
"""Places that people call countries and that have no ISO code."""

WITHOUT_CODE_LETTERS = ["XK", "XKX", "KOS"]
"""The letters that others use for such a place."""

FORMER = [
    "Yugoslavia", "Jugoslawien", "Yougoslavie", "Jugoslavia", "Czechoslovakia", "Tschechoslowakei",
    "Tchécoslovaquie", "CSSR", "USSR", "Soviet Union", "UdSSR", "Sowjetunion", "URSS", "Serbia and Montenegro",
    "Serbien und Montenegro", "Netherlands Antilles", "Niederländische Antillen", "Nederlandse Antillen",
    "Antilles néerlandaises", "East Germany", "Ostdeutschland", "Zaire", "Upper Volta", "Dahomey", "Rhodesia",
]  # fmt: skip
"""Countries that are no more and became several, or another; which one, a person must say."""
